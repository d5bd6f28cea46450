// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/board.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/bytes.h"
#include "cairn/coord/meeting.h"
#include "cairn/coord/wire.h"

namespace cairn::coord {
namespace {

// MPI, for one, moves data only while it is called.
constexpr std::chrono::nanoseconds kWaitUnderWay = std::chrono::microseconds(100);

// When all have come to a call, everybody has read the verdict of the one before.
constexpr std::uint64_t kCallsKept = 2;

std::string key_of(int rank, std::uint64_t call) {
  return rank == 0 ? fmt::format("verdict-{}", call) : fmt::format("rank-{}-{}", rank, call);
}

std::string alarm_of(std::uint64_t call) { return fmt::format("alarm-{}", call); }

class BoardChannel final : public Channel {
 public:
  BoardChannel(std::unique_ptr<Board> board, Place place, Clock& clock)
      : board_(std::move(board)), place_(place), clock_(clock) {}

  Place place() const override { return place_; }
  Clock& clock() override { return clock_; }
  void wait(std::chrono::nanoseconds span) override {
    const auto quiet = board_->settled();
    if (!quiet) unheard_ = quiet.error();
    clock_.pause(quiet && *quiet ? span : std::min(span, kWaitUnderWay));
  }

  Result<void> send(const Message& message) override {
    CAIRN_TRY_ASSIGN(const Buffer bytes, encode_message(message));
    CAIRN_TRY(put(message, message.call, bytes));
    // A farewell is for the next call; it takes the place of what was said in this one.
    if (message.outcome == CallStatus::kFailed && place_.rank != 0)
      CAIRN_TRY(put(message, message.call - 1, bytes));
    if (message.call <= kCallsKept || message.call == sent_) return {};
    sent_ = message.call;
    return board_->remove(key_of(place_.rank, message.call - kCallsKept));
  }
  Result<bool> settled() override { return board_->settled(); }

  Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int> from) override {
    if (unheard_) return *std::exchange(unheard_, std::nullopt);
    std::vector<Received> received;
    for (const int rank : from) CAIRN_TRY(hear(rank, call, received));
    if (place_.rank == 0) CAIRN_TRY(hear_alarm(call, received));
    return received;
  }

 private:
  Result<void> put(const Message& message, std::uint64_t call, const Buffer& bytes) {
    CAIRN_TRY(board_->put(key_of(place_.rank, call), bytes.bytes()));
    if (place_.rank == 0 || message.outcome == CallStatus::kDone) return {};
    return board_->put(alarm_of(call), as_bytes(std::to_string(place_.rank)));
  }

  Result<void> hear(int rank, std::uint64_t call, std::vector<Received>& received) {
    CAIRN_TRY_ASSIGN(const auto found, board_->find(key_of(rank, call)));
    if (!found) return {};
    auto message = decode_message(*found);
    if (!message) return std::move(message).error().in(fmt::format("from rank {}", rank));
    received.push_back({rank, *std::move(message)});
    return {};
  }

  // The alarm names the rank; what it has to say stands in its own message.
  Result<void> hear_alarm(std::uint64_t call, std::vector<Received>& received) {
    CAIRN_TRY_ASSIGN(const auto found, board_->find(alarm_of(call)));
    if (!found) return {};
    const std::string_view text = as_text(found->bytes());
    int rank = 0;
    std::from_chars(text.data(), text.data() + text.size(), rank);
    if (rank < 1 || rank >= place_.count) return {};
    return hear(rank, call, received);
  }

  const std::unique_ptr<Board> board_;
  const Place place_;
  Clock& clock_;
  std::uint64_t sent_ = 0;
  std::optional<Error> unheard_;  ///< what the board said while nobody could be told: Ctrl-C, often
};

}  // namespace

Result<std::unique_ptr<Coordinator>> open_board(std::unique_ptr<Board> board, Place place,
                                                Clock& clock, Interrupted interrupted) {
  CAIRN_TRY(check_place(place));
  return make_coordinator(std::make_unique<BoardChannel>(std::move(board), place, clock),
                          std::move(interrupted));
}

}  // namespace cairn::coord
