// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/mpi/mpi_coordinator.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>

#include "cairn/coord/channel.h"
#include "cairn/coord/meeting.h"
#include "cairn/coord/refusals.h"
#include "cairn/coord/wire.h"

namespace cairn::coord {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr int kTag = 1;
constexpr std::size_t kMaxMessage = kMaxHeader + kMaxPayload;

// MPI moves data only while it is called: as long as some is on its way, nobody sleeps for long.
constexpr nanoseconds kWaitUnderWay = std::chrono::microseconds(100);

Result<void> check(int status, const char* doing) {
  if (status == MPI_SUCCESS) return {};
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int size = 0;
  if (MPI_Error_string(status, text.data(), &size) != MPI_SUCCESS) size = 0;
  text.resize(static_cast<std::size_t>(size));
  return Error(Code::kFailedPrecondition, "coord/mpi",
               fmt::format("MPI could not {}: {}", doing, text));
}

// Both questions may be asked at any time.
Result<void> check_ready() {
  int initialised = 0;
  int finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (initialised != 0 && finalised == 0) return {};
  return Error(Code::kFailedPrecondition, "coord/mpi-not-ready",
               initialised == 0 ? "MPI is not initialised; call MPI_Init_thread() first"
                                : "MPI is finalised already; destroy coordinators before that");
}

Result<void> check_thread() {
  int level = MPI_THREAD_SINGLE;
  int is_main = 0;
  CAIRN_TRY(check(MPI_Query_thread(&level), "tell its thread level"));
  CAIRN_TRY(check(MPI_Is_thread_main(&is_main), "tell its main thread"));
  if (level >= MPI_THREAD_SERIALIZED || is_main != 0) return {};
  return wrong_mpi_thread();
}

struct Transfer {
  Buffer bytes = {};
  MPI_Request request = MPI_REQUEST_NULL;
  int peer = 0;
};

// What MPI may still read and write after a coordinator is gone.
struct Transfers {
  MPI_Comm communicator = MPI_COMM_NULL;
  std::vector<Transfer> outgoing;
  std::deque<Transfer> incoming;  ///< in the order in which they were sent, for each peer

  bool under_way() const { return !outgoing.empty() || !incoming.empty(); }
};

Result<bool> is_done(Transfer& transfer) {
  int done = 0;
  CAIRN_TRY(check(MPI_Test(&transfer.request, &done, MPI_STATUS_IGNORE), "move a message"));
  return done != 0;
}

class MpiChannel final : public Channel {
 public:
  MpiChannel(std::unique_ptr<Transfers> transfers, Place place, Clock& clock)
      : transfers_(std::move(transfers)), place_(place), clock_(clock) {}
  ~MpiChannel() override;

  Place place() const override { return place_; }
  Clock& clock() override { return clock_; }
  void wait(nanoseconds span) override {
    clock_.pause(transfers_->under_way() ? std::min(span, kWaitUnderWay) : span);
  }

  Result<void> send(const Message& message) override;
  Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int> from) override;
  Result<bool> settled() override;

 private:
  Result<void> send_to(int peer, const Buffer& bytes);
  Result<bool> begin_receiving();
  Result<void> finish_receiving();

  std::unique_ptr<Transfers> transfers_;
  const Place place_;
  Clock& clock_;
  std::deque<Received> inbox_;
  bool broken_ = false;
};

MpiChannel::~MpiChannel() {
  if (!check_ready()) return;
  if (broken_ || transfers_->under_way()) {
    std::ignore = transfers_.release();  // MPI may still use it
    return;
  }
  check(MPI_Comm_free(&transfers_->communicator), "free a communicator")
      .ignore_error("it is one communicator less");
}

Result<void> MpiChannel::send(const Message& message) {
  CAIRN_TRY(check_ready());
  CAIRN_TRY(check_thread());
  if (message.outcome != CallStatus::kDone) broken_ = true;
  CAIRN_TRY_ASSIGN(const Buffer bytes, encode_message(message));
  if (place_.rank != 0) return send_to(0, bytes);
  for (int rank = 1; rank < place_.count; ++rank) CAIRN_TRY(send_to(rank, bytes));
  return {};
}

Result<void> MpiChannel::send_to(int peer, const Buffer& bytes) {
  Transfer transfer{.bytes = bytes, .peer = peer};
  CAIRN_TRY(check(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer, kTag,
                            transfers_->communicator, &transfer.request),
                  "send a message"));
  transfers_->outgoing.push_back(std::move(transfer));
  return {};
}  // NOLINT(clang-analyzer-optin.mpi.MPI-Checker): settled() sees it through

Result<bool> MpiChannel::settled() {
  std::vector<Transfer>& outgoing = transfers_->outgoing;
  for (auto at = outgoing.begin(); at != outgoing.end();) {
    CAIRN_TRY_ASSIGN(const bool done, is_done(*at));
    at = done ? outgoing.erase(at) : at + 1;
  }
  return outgoing.empty();
}

Result<std::vector<Received>> MpiChannel::receive(std::uint64_t call, std::span<const int>) {
  CAIRN_TRY(check_ready());
  CAIRN_TRY(check_thread());
  CAIRN_TRY(settled());
  while (true) {
    CAIRN_TRY_ASSIGN(const bool begun, begin_receiving());
    if (!begun) break;
  }
  CAIRN_TRY(finish_receiving());
  std::vector<Received> received;
  for (const Received& item : inbox_) {
    if (item.message.call >= call) received.push_back(item);
    broken_ |= item.message.outcome != CallStatus::kDone;
  }
  std::erase_if(inbox_, [&](const Received& item) { return item.message.call <= call; });
  return received;
}

Result<bool> MpiChannel::begin_receiving() {
  int found = 0;
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status;
  CAIRN_TRY(
      check(MPI_Improbe(MPI_ANY_SOURCE, kTag, transfers_->communicator, &found, &handle, &status),
            "look for a message"));
  if (found == 0) return false;
  int size = 0;
  CAIRN_TRY(check(MPI_Get_count(&status, MPI_BYTE, &size), "measure a message"));
  if (size < 0 || static_cast<std::size_t>(size) > kMaxMessage) {
    return Error(Code::kCorrupt, "coord/bad-message",
                 fmt::format("rank {} sent {} bytes in one message; use the same version of Cairn "
                             "on every rank",
                             status.MPI_SOURCE, size));
  }
  Transfer transfer{.peer = status.MPI_SOURCE};
  CAIRN_TRY_ASSIGN(transfer.bytes, Buffer::allocate(static_cast<std::size_t>(size)));
  CAIRN_TRY(check(
      MPI_Imrecv(transfer.bytes.mutable_bytes().data(), size, MPI_BYTE, &handle, &transfer.request),
      "receive a message"));
  transfers_->incoming.push_back(std::move(transfer));
  return true;
}

// A short message may be there before a long one that was sent earlier; it has to wait.
Result<void> MpiChannel::finish_receiving() {
  std::deque<Transfer>& incoming = transfers_->incoming;
  for (auto at = incoming.begin(); at != incoming.end();) {
    CAIRN_TRY_ASSIGN(const bool done, is_done(*at));
    if (!done || std::find_if(incoming.begin(), at, [&](const Transfer& earlier) {
                   return earlier.peer == at->peer;
                 }) != at) {
      ++at;
      continue;
    }
    CAIRN_TRY_ASSIGN(Message message, decode_message(at->bytes));
    inbox_.push_back({at->peer, std::move(message)});
    at = incoming.erase(at);
  }
  return {};
}

Result<MPI_Comm> find_communicator(const MpiOptions& options) {
  if (!options.communicator) return MPI_COMM_WORLD;
  const MPI_Comm communicator = MPI_Comm_f2c(static_cast<MPI_Fint>(*options.communicator));
  int between_groups = 0;
  if (communicator != MPI_COMM_NULL) {
    CAIRN_TRY(check(MPI_Comm_test_inter(communicator, &between_groups), "look at a communicator"));
    if (between_groups == 0) return communicator;
  }
  return Error(Code::kInvalidArgument, "coord/bad-communicator",
               "the communicator is null, or one between groups; give MPI_Comm_c2f() of one that "
               "this process belongs to");
}

// Waits for all processes, but not for ever, which MPI_Comm_dup() would.
Result<std::unique_ptr<Transfers>> duplicate(MPI_Comm communicator, Deadline deadline,
                                             Clock& clock) {
  auto transfers = std::make_unique<Transfers>();
  Transfer transfer;
  CAIRN_TRY(check(MPI_Comm_idup(communicator, &transfers->communicator, &transfer.request),
                  "duplicate a communicator"));
  while (true) {
    const bool last = deadline.passed(clock);
    CAIRN_TRY_ASSIGN(const bool done, is_done(transfer));
    if (done) break;
    if (last) {
      std::ignore = transfers.release();  // MPI may still use it
      return Error(Code::kDeadlineExceeded, "coord/late-ranks",
                   "not all processes of the communicator opened their coordinators before the "
                   "deadline; MPI does not tell which");
    }
    clock.pause(milliseconds(1));
  }
  CAIRN_TRY(check(MPI_Comm_set_errhandler(transfers->communicator, MPI_ERRORS_RETURN),
                  "set an error handler"));
  return transfers;
}

}  // namespace

Result<std::unique_ptr<Coordinator>> open_mpi(const MpiOptions& options) {
  CAIRN_TRY(check_ready());
  CAIRN_TRY(check_thread());
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  CAIRN_TRY_ASSIGN(const MPI_Comm communicator, find_communicator(options));
  Place place;
  CAIRN_TRY(check(MPI_Comm_rank(communicator, &place.rank), "tell the rank"));
  CAIRN_TRY(check(MPI_Comm_size(communicator, &place.count), "tell the number of ranks"));
  CAIRN_TRY(check_place(place));
  CAIRN_TRY_ASSIGN(auto transfers, duplicate(communicator, options.deadline, clock));
  return make_coordinator(std::make_unique<MpiChannel>(std::move(transfers), place, clock));
}

}  // namespace cairn::coord
