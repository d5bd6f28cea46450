// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/unheard_errors.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cairn/async/background.h"
#include "cairn/async/mutex.h"
#include "cairn/async/per_process.h"
#include "cairn/base/log.h"

namespace cairn {

namespace {

class UnheardErrors {
 public:
  static UnheardErrors& of_this_process() { return PerProcess<UnheardErrors>::get(); }

  void add(Error error, std::shared_ptr<const std::atomic<bool>> heard) {
    MutexLock lock(mutex_);
    std::erase_if(all_, [](const Unheard& each) { return each.heard->load(); });
    all_.push_back({std::move(error), std::move(heard)});
    if (!is_exit_watched_) is_exit_watched_ = ::on_exit(leave, nullptr) == 0;
  }

 private:
  struct Unheard {
    Error error;
    std::shared_ptr<const std::atomic<bool>> heard;
  };

  // In an exit handler, exit() goes on with the handlers that are left, with the new status.
  static void leave(int status, void*) {
    wait_for_background();
    if (of_this_process().tell() && status == 0) std::exit(EXIT_FAILURE);
  }

  bool tell() {
    std::vector<Unheard> all;
    {
      MutexLock lock(mutex_);
      all.swap(all_);
      is_exit_watched_ = false;
    }
    std::erase_if(all, [](const Unheard& each) { return each.heard->load(); });
    for (const Unheard& each : all) {
      log_errors({LogLevel::kError, "save/unheard",
                  fmt::format("a save failed and the program did not ask how it ended (wait() of "
                              "the handle says so, forget() ignores it): {}",
                              each.error.to_string())});
    }
    return !all.empty();
  }

  Mutex mutex_;
  bool is_exit_watched_ CAIRN_GUARDED_BY(mutex_) = false;
  std::vector<Unheard> all_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

void tell_at_exit(Error error, std::shared_ptr<const std::atomic<bool>> heard) {
  UnheardErrors::of_this_process().add(std::move(error), std::move(heard));
}

}  // namespace cairn
