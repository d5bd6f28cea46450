// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/background.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <list>
#include <memory>
#include <thread>
#include <utility>

#include "cairn/async/caught.h"
#include "cairn/async/mutex.h"
#include "cairn/async/per_process.h"

namespace cairn {

namespace {

class Background {
 public:
  static Background& of_this_process() {
    static const int is_waited_for = std::atexit(wait_for_background);
    static_cast<void>(is_waited_for);
    return PerProcess<Background>::get();
  }

  void run(Task work, bool aside) {
    join_ended();
    const auto task = std::make_shared<Task>(std::move(work));
    if (!start(task, aside)) call(*task);  // no more threads: the caller's must do
  }

  bool is_one_of_them(std::thread::id id) {
    MutexLock lock(mutex_);
    return std::ranges::any_of(threads_, [&](const Runner& runner) {
      return !runner.aside && runner.thread.get_id() == id;
    });
  }

  bool wait(Deadline deadline) {
    {
      MutexLock lock(mutex_);
      while (is_anything_running()) {
        if (deadline.passed()) return false;
        if (deadline.is_never()) {
          ended_.wait(mutex_);
        } else {
          ended_.wait_until(mutex_, deadline.time());
        }
      }
    }
    join_ended();
    return true;
  }

 private:
  struct Runner {
    bool aside = false;
    bool ended = false;
    std::jthread thread;
  };

  bool start(const std::shared_ptr<Task>& task, bool aside) {
    MutexLock lock(mutex_);
    auto self = threads_.end();
    try {
      self = threads_.emplace(threads_.end());
      self->aside = aside;
      self->thread = std::jthread([this, self, task] {
        prepare_for_exceptions();
        call(*task);
        *task = {};
        MutexLock done(mutex_);
        self->ended = true;
        ended_.notify_all();
      });
      return true;
    } catch (const std::exception&) {  // no thread, or no memory for one
      if (self != threads_.end()) threads_.erase(self);
      return false;
    }
  }

  static void call(Task& task) {
    try {
      task();
    } catch (...) {  // NOLINT(bugprone-empty-catch): as Executor: tasks carry results
    }
  }

  bool is_anything_running() const CAIRN_REQUIRES(mutex_) {
    for (const Runner& runner : threads_) {
      if (!runner.ended) return true;
    }
    return false;
  }

  void join_ended() {
    std::list<Runner> ended;  // joined after the lock is gone
    MutexLock lock(mutex_);
    for (auto at = threads_.begin(); at != threads_.end();) {
      const auto next = std::next(at);
      if (at->ended) ended.splice(ended.end(), threads_, at);
      at = next;
    }
  }

  Mutex mutex_;
  CondVar ended_;
  std::list<Runner> threads_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

void run_in_background(Task work) { Background::of_this_process().run(std::move(work), false); }

void run_aside(Task work) { Background::of_this_process().run(std::move(work), true); }

bool is_background_thread() {
  return Background::of_this_process().is_one_of_them(std::this_thread::get_id());
}

void wait_for_background() { Background::of_this_process().wait(Deadline::never()); }

bool wait_for_background_until(Deadline deadline) {
  return Background::of_this_process().wait(deadline);
}

}  // namespace cairn
