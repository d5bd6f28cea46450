// SPDX-License-Identifier: Apache-2.0
#include "cairn/async/executor.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cairn/async/caught.h"
#include "cairn/async/mutex.h"

namespace cairn {
namespace {

void run_quietly(Task task) {
  try {
    task();
  } catch (...) {  // NOLINT(bugprone-empty-catch): the contract of Executor
  }
}

class InlineExecutor final : public Executor {
 public:
  void add(Task task) override { run_quietly(std::move(task)); }
  std::size_t width() const override { return 1; }
};

class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(std::size_t threads) {
    threads_.reserve(threads);
    try {
      while (threads_.size() < threads) threads_.emplace_back([this] { serve(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch): fewer threads will do
    }
  }
  ~ThreadPool() override {
    {
      MutexLock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void add(Task task) override {
    if (threads_.empty()) return run_quietly(std::move(task));
    {
      MutexLock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

  std::size_t width() const override { return std::max<std::size_t>(threads_.size(), 1); }

 private:
  void serve() {
    prepare_for_exceptions();
    while (std::optional<Task> task = next()) run_quietly(*std::move(task));
  }

  // Waits for a task; nothing when the pool closes and all that was added has been taken.
  std::optional<Task> next() {
    MutexLock lock(mutex_);
    while (tasks_.empty() && !closing_) changed_.wait(mutex_);
    if (tasks_.empty()) return std::nullopt;
    std::optional<Task> task(std::move(tasks_.front()));
    tasks_.pop_front();
    return task;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<Task> tasks_ CAIRN_GUARDED_BY(mutex_);
  bool closing_ CAIRN_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

// The indices of one for_each_index, handed out in order. Helpers may come when the caller is gone:
// they find nothing to begin, and touch nothing of the caller's.
class IndexQueue {
 public:
  explicit IndexQueue(std::size_t count) : count_(count) {}

  // Once it has returned nothing, it always will.
  std::optional<std::size_t> begin() {
    MutexLock lock(mutex_);
    if (error_ || next_ == count_) return std::nullopt;
    ++running_;
    return next_++;
  }

  void end(std::size_t index, Result<void> result) {
    MutexLock lock(mutex_);
    if (!result && (!error_ || index < error_index_)) {
      error_ = std::move(result).error();
      error_index_ = index;
    }
    if (--running_ == 0) idle_.notify_all();
  }

  // REQUIRES: begin() has returned nothing.
  Result<void> wait() {
    MutexLock lock(mutex_);
    while (running_ > 0) idle_.wait(mutex_);
    if (error_) return *error_;
    return {};
  }

 private:
  const std::size_t count_;
  Mutex mutex_;
  CondVar idle_;
  std::size_t next_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::size_t running_ CAIRN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> error_ CAIRN_GUARDED_BY(mutex_);
  std::size_t error_index_ CAIRN_GUARDED_BY(mutex_) = 0;
};

using IndexWork = std::function<Result<void>(std::size_t)>;

Result<void> call(const IndexWork& work, std::size_t index) {
  return without_exceptions([&] { return work(index); });
}

void drain(IndexQueue& queue, const IndexWork& work) {
  while (const auto index = queue.begin()) queue.end(*index, call(work, *index));
}

}  // namespace

std::unique_ptr<Executor> make_thread_pool(std::size_t threads) {
  return std::make_unique<ThreadPool>(std::max<std::size_t>(threads, 1));
}

std::unique_ptr<Executor> make_inline_executor() { return std::make_unique<InlineExecutor>(); }

Result<void> for_each_index(Executor& executor, std::size_t count, const IndexWork& work) {
  prepare_for_exceptions();
  if (count == 0) return {};
  const auto queue = std::make_shared<IndexQueue>(count);
  const std::size_t helpers = std::min(executor.width(), count) - 1;
  const auto helped = without_exceptions([&]() -> Result<void> {
    for (std::size_t i = 0; i < helpers; ++i) executor.add([queue, &work] { drain(*queue, work); });
    return {};
  });
  helped.ignore_error("fewer threads will do");
  drain(*queue, work);
  return queue->wait();
}

}  // namespace cairn
