// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/meeting.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "cairn/base/utf8.h"
#include "cairn/coord/roll_call.h"
#include "cairn/coord/verdict.h"

namespace cairn::coord {
namespace {

using std::chrono::nanoseconds;

// A wait grows by a quarter of what has been waited, so it ends at most that much too late, and
// somebody who waits for long asks four times a second.
constexpr nanoseconds kFirstWait = std::chrono::microseconds(50);
constexpr nanoseconds kLongestWait = std::chrono::milliseconds(250);

// How long rank 0 of a first call that has failed waits for those who have not come yet.
constexpr std::chrono::seconds kFirstGrace{10};

constexpr auto kRankZero = std::to_array({0});

Result<void> check_phase(std::string_view phase) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (!phase.empty() && phase.size() <= kMaxPhase && is_utf8(phase) &&
      std::ranges::none_of(phase, is_control)) {
    return {};
  }
  return Error(Code::kInvalidArgument, "coord/bad-phase",
               fmt::format("a phase is a short text such as 'save 100': 1 to {} bytes of UTF-8 "
                           "without control characters; this one has {}",
                           kMaxPhase, phase.size()));
}

Result<void> check_payload(std::size_t size) {
  if (size <= kMaxPayload) return {};
  return Error(Code::kInvalidArgument, "coord/payload-too-large",
               fmt::format("a rank may send {} bytes in one call, not {}; put large data into the "
                           "storage and send its name",
                           kMaxPayload, size));
}

Deadline earlier(Deadline a, Deadline b) {
  if (a.is_never() || b.is_never()) return a.is_never() ? b : a;
  return a.time() < b.time() ? a : b;
}

Result<Buffer> immutable_copy(ByteSpan bytes) {
  CAIRN_TRY_ASSIGN(Buffer copy, Buffer::allocate(bytes.size()));
  if (!bytes.empty()) std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
  return Buffer::lend(copy.bytes(), std::make_shared<const Buffer>(copy));
}

class Meeting final : public Coordinator {
 public:
  Meeting(std::unique_ptr<Channel> channel, Interrupted interrupted)
      : channel_(std::move(channel)),
        interrupted_(std::move(interrupted)),
        place_(channel_->place()) {}

  int rank() const override { return place_.rank; }
  int count() const override { return place_.count; }

  Result<void> barrier(std::string_view phase, Deadline deadline) override {
    CAIRN_TRY(meet(Operation::kBarrier, phase, {}, deadline));
    return {};
  }
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    const ByteSpan sent = rank() == 0 ? bytes : ByteSpan();
    CAIRN_TRY_ASSIGN(auto payloads, meet(Operation::kBroadcast, phase, sent, deadline));
    return std::move(payloads[0]);
  }
  Result<std::vector<Buffer>> gather(ByteSpan bytes, std::string_view phase,
                                     Deadline deadline) override {
    CAIRN_TRY_ASSIGN(auto payloads, meet(Operation::kGather, phase, bytes, deadline));
    if (rank() != 0) payloads.clear();
    return payloads;
  }

 private:
  using Payloads = std::vector<Buffer>;

  Result<Payloads> meet(Operation operation, std::string_view phase, ByteSpan bytes,
                        Deadline deadline);
  Result<Payloads> preside(const Message& call, Deadline deadline);
  Message judge(RollCall& roll, std::uint64_t call, Deadline deadline);
  Result<Payloads> attend(const Message& call, Deadline deadline);
  Result<std::optional<Message>> hear_verdict(const Message& call, Deadline deadline);
  Result<std::optional<Message>> await_verdict(std::uint64_t call, Deadline deadline);
  Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int> from);
  Result<void> send(const Message& message, Deadline deadline);
  Result<void> settle(Deadline deadline);
  void say_farewell(const Message& call, std::string text);

  bool passed(Deadline deadline) { return deadline.passed(channel_->clock()); }
  Deadline grace() { return Deadline::in(kGrace, channel_->clock()); }
  void wait(nanoseconds& span, Deadline deadline);

  const std::unique_ptr<Channel> channel_;
  const Interrupted interrupted_;
  const Place place_;
  std::uint64_t calls_ = 0;
  std::string seen_;     ///< phase of the last call that all ranks were in
  Buffer last_payload_;  ///< rank 0: of the last verdict
  std::string trouble_;  ///< why the last look found nothing, if it failed
  std::optional<Error> dead_;
};

Result<Meeting::Payloads> Meeting::meet(Operation operation, std::string_view phase, ByteSpan bytes,
                                        Deadline deadline) {
  CAIRN_TRY(check_phase(phase));
  CAIRN_TRY(check_payload(bytes.size()));
  if (dead_) {
    return Error(Code::kFailedPrecondition, "coord/dead",
                 fmt::format("an earlier call failed, and with it this coordinator; make a new one "
                             "on every rank. It was: {}",
                             dead_->to_string()));
  }
  CAIRN_TRY_ASSIGN(Buffer payload, immutable_copy(bytes));
  const Message call{.call = ++calls_,
                     .operation = operation,
                     .phase = std::string(phase),
                     .payload = std::move(payload)};
  auto ended = rank() == 0 ? preside(call, deadline) : attend(call, deadline);
  if (ended) {
    seen_ = phase;
  } else {
    dead_ = ended.error();
  }
  return ended;
}

Result<Meeting::Payloads> Meeting::preside(const Message& call, Deadline deadline) {
  RollCall roll(call, count(), seen_);
  Message verdict = judge(roll, call.call, deadline);
  if (verdict.outcome != CallStatus::kDone) verdict.payload = last_payload_;
  last_payload_ = verdict.payload;
  const Deadline end = passed(deadline) ? grace() : deadline;
  auto sent = send(verdict, end);
  if (sent) sent = settle(end);
  if (!sent) {
    const std::string why = "the others could not be told: " + sent.error().to_string();
    if (verdict.outcome == CallStatus::kDone) {
      verdict = roll.fail(0, why);
    } else {
      verdict.text += fmt::format(" ({})", why);
    }
  }
  if (verdict.outcome != CallStatus::kDone) return error_of(verdict);
  return std::move(roll).payloads();
}

Message Meeting::judge(RollCall& roll, std::uint64_t call, Deadline deadline) {
  std::optional<Message> verdict;
  nanoseconds span = kFirstWait;
  for (bool last = false; !roll.complete() && !last;) {
    last = passed(deadline) || roll.urgent();
    const std::size_t before = roll.missing().size();
    const auto received = receive(call, last ? roll.missing() : roll.next_to_look_at());
    if (!received) return roll.fail(0, received.error().to_string());
    for (const Received& item : *received) {
      auto ended = roll.take(item);
      if (!ended || verdict) continue;
      if (call > 1) return *std::move(ended);
      // Who comes after a first call has failed cannot tell its verdict from an earlier job's.
      verdict = std::move(ended);
      deadline = earlier(deadline, Deadline::in(kFirstGrace, channel_->clock()));
    }
    if (roll.missing().size() == before && !last && !roll.urgent()) wait(span, deadline);
  }
  if (verdict) return *std::move(verdict);
  Message concluded = roll.conclude();
  if (concluded.outcome == CallStatus::kLate) concluded.text += trouble_;
  return concluded;
}

Result<Meeting::Payloads> Meeting::attend(const Message& call, Deadline deadline) {
  auto heard = hear_verdict(call, deadline);
  if (!heard) {
    const std::string why = heard.error().to_string();
    say_farewell(call, why);
    return Error(Code::kCancelled, "coord/rank-failed",
                 fmt::format("rank {} failed: {}", rank(), why));
  }
  if (!*heard) {
    say_farewell(call, fmt::format("it gave up in {}", name_call(call)));
    return Error(Code::kDeadlineExceeded, "coord/late-ranks",
                 late_text(kRankZero, call, seen_, "the deadline") + trouble_);
  }
  const Message& verdict = **heard;
  const bool about_this_call = verdict.call == call.call;
  if (about_this_call && verdict.outcome != CallStatus::kDone) return error_of(verdict);
  return Payloads(1, verdict.payload);
}

Result<std::optional<Message>> Meeting::hear_verdict(const Message& call, Deadline deadline) {
  CAIRN_TRY(send(call, deadline));
  CAIRN_TRY_ASSIGN(auto verdict, await_verdict(call.call, deadline));
  if (verdict) return verdict;
  Message impatient = call;
  impatient.outcome = CallStatus::kLate;
  CAIRN_TRY(send(impatient, grace()));
  return await_verdict(call.call, grace());
}

Result<std::optional<Message>> Meeting::await_verdict(std::uint64_t call, Deadline deadline) {
  nanoseconds span = kFirstWait;
  while (true) {
    const bool last = passed(deadline);
    CAIRN_TRY_ASSIGN(auto received, receive(call, kRankZero));
    if (!received.empty()) return std::optional(std::move(received[0].message));
    if (last) return std::optional<Message>();
    wait(span, deadline);
  }
}

// What is worth a retry counts as nothing yet, but is remembered.
Result<std::vector<Received>> Meeting::receive(std::uint64_t call, std::span<const int> from) {
  if (interrupted_ && interrupted_())
    return Error(Code::kCancelled, "coord/interrupted", "it was interrupted");
  auto received = channel_->receive(call, from);
  trouble_.clear();
  if (received || received.error().code() != Code::kUnavailable) return received;
  trouble_ = fmt::format(" (the last look failed: {})", received.error().to_string());
  return std::vector<Received>();
}

Result<void> Meeting::send(const Message& message, Deadline deadline) {
  nanoseconds span = kFirstWait;
  while (true) {
    auto sent = channel_->send(message);
    if (sent || sent.error().code() != Code::kUnavailable || passed(deadline)) return sent;
    wait(span, deadline);
  }
}

// Who does not take the verdict will be late for the next call.
Result<void> Meeting::settle(Deadline deadline) {
  nanoseconds span = kFirstWait;
  while (true) {
    CAIRN_TRY_ASSIGN(const bool settled, channel_->settled());
    if (settled || passed(deadline)) return {};
    wait(span, deadline);
  }
}

void Meeting::say_farewell(const Message& call, std::string text) {
  Message farewell = call;
  farewell.call += 1;
  farewell.outcome = CallStatus::kFailed;
  farewell.text = std::move(text);
  farewell.payload = {};
  channel_->send(farewell).ignore_error("the others have deadlines of their own");
}

void Meeting::wait(nanoseconds& span, Deadline deadline) {
  const nanoseconds left =
      deadline.is_never() ? span : nanoseconds(deadline.time() - channel_->clock().monotonic());
  if (left > nanoseconds(0)) channel_->wait(std::min(span, left));
  span = std::min(span + span / 4, kLongestWait);
}

}  // namespace

Result<void> check_place(Place place) {
  if (place.count >= 1 && place.count <= kMaxRanks && place.rank >= 0 && place.rank < place.count) {
    return {};
  }
  return Error(Code::kInvalidArgument, "coord/bad-rank",
               fmt::format("rank {} of {} is impossible: a job has 1 to {} ranks, counted from 0",
                           place.rank, place.count, kMaxRanks));
}

std::unique_ptr<Coordinator> make_coordinator(std::unique_ptr<Channel> channel,
                                              Interrupted interrupted) {
  return std::make_unique<Meeting>(std::move(channel), std::move(interrupted));
}

}  // namespace cairn::coord
