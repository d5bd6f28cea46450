// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/in_process.h"

#include <optional>

#include "cairn/async/mutex.h"
#include "cairn/coord/meeting.h"

namespace cairn::coord {
namespace {

struct Mailbox {
  explicit Mailbox(int count) : sent(static_cast<std::size_t>(count)) {}

  Mutex mutex;
  CondVar changed;
  std::uint64_t version CAIRN_GUARDED_BY(mutex) = 0;
  std::vector<std::optional<Message>> sent CAIRN_GUARDED_BY(mutex);  ///< the last one, by rank
};

class InProcessChannel final : public Channel {
 public:
  InProcessChannel(std::shared_ptr<Mailbox> mailbox, Place place)
      : mailbox_(std::move(mailbox)), place_(place) {}

  Place place() const override { return place_; }
  Clock& clock() override { return system_clock(); }

  Result<void> send(const Message& message) override {
    MutexLock lock(mailbox_->mutex);
    mailbox_->sent[static_cast<std::size_t>(place_.rank)] = message;
    ++mailbox_->version;
    mailbox_->changed.notify_all();
    return {};
  }

  Result<std::vector<Received>> receive(std::uint64_t call, std::span<const int>) override {
    std::vector<Received> received;
    MutexLock lock(mailbox_->mutex);
    const int end = place_.rank == 0 ? place_.count : 1;
    for (int from = place_.rank == 0 ? 1 : 0; from < end; ++from) {
      const auto& message = mailbox_->sent[static_cast<std::size_t>(from)];
      if (message && message->call >= call) received.push_back({from, *message});
    }
    return received;
  }

  // Whatever came after the last wait was looked at, or is looked at now.
  void wait(std::chrono::nanoseconds span) override {
    const auto until = clock().monotonic() + span;
    MutexLock lock(mailbox_->mutex);
    while (mailbox_->version == waited_for_) {
      if (!mailbox_->changed.wait_until(mailbox_->mutex, until)) break;
    }
    waited_for_ = mailbox_->version;
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const Place place_;
  std::uint64_t waited_for_ = 0;
};

}  // namespace

Result<std::vector<std::unique_ptr<Coordinator>>> make_in_process_coordinators(int count) {
  CAIRN_TRY(check_place({0, count}));
  const auto mailbox = std::make_shared<Mailbox>(count);
  std::vector<std::unique_ptr<Coordinator>> coordinators;
  coordinators.reserve(static_cast<std::size_t>(count));
  for (int rank = 0; rank < count; ++rank) {
    coordinators.push_back(
        make_coordinator(std::make_unique<InProcessChannel>(mailbox, Place{rank, count})));
  }
  return coordinators;
}

}  // namespace cairn::coord
