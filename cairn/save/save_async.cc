// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save_async.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "cairn/async/background.h"
#include "cairn/async/caught.h"
#include "cairn/async/future.h"
#include "cairn/async/per_process.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/save/save_internals.h"
#include "cairn/save/staging.h"
#include "cairn/save/start_save.h"
#include "cairn/save/unheard_errors.h"

namespace cairn {

struct SaveHandle::State {
  std::string path;
  Clock* clock = nullptr;  // the machine's, or one that outlives the runtime
  Promise<SaveReport> promise = {};
  Future<SaveReport> result = promise.future();
  HomeProcess home = {};
  std::atomic<std::thread::id> runner = {};  // the thread that it runs on, once it does
  std::atomic<bool> over = false;            // after all else: nobody hears of the end before
  /// The error was, or nobody wants to hear it.
  const std::shared_ptr<std::atomic<bool>> heard = std::make_shared<std::atomic<bool>>(false);

  Mutex mutex = {};
  std::string phase CAIRN_GUARDED_BY(mutex) = "staging";
  std::uint64_t done CAIRN_GUARDED_BY(mutex) = 0;
  std::uint64_t total CAIRN_GUARDED_BY(mutex) = 0;
  Clock::Mono began CAIRN_GUARDED_BY(mutex) = {};
  Clock::Mono latest CAIRN_GUARDED_BY(mutex) = {};
  std::optional<Result<SaveReport>> ended CAIRN_GUARDED_BY(mutex) = {};
  std::vector<Listener> listeners CAIRN_GUARDED_BY(mutex) = {};

  void end(Result<SaveReport> how) {
    std::vector<Listener> all;
    {
      MutexLock lock(mutex);
      phase = how ? "done" : "failed";
      ended = how;
      all.swap(listeners);
    }
    for (const Listener& listener : all) {
      const auto heard_it = without_exceptions([&]() -> Result<void> {
        listener(how);
        return {};
      });
      heard_it.ignore_error("a listener has none to tell");
    }
    promise.set(std::move(how));
    over = true;
    over.notify_all();
  }

  // In a child its mutexes may be locked for ever.
  bool is_parents() const { return !home.is_here() && !over; }

  bool is_waiting_for_this_thread() const { return !over && runner == std::this_thread::get_id(); }

  Error in_callback() const {
    return Error(Code::kFailedPrecondition, "save/in-callback",
                 fmt::format("a callback of the save to {} cannot wait for it: the save ends when "
                             "its callbacks have returned",
                             path));
  }

  Error not_ours() const {
    return Error(
        Code::kFailedPrecondition, "save/parent-process",
        fmt::format("the save to {} belongs to the parent process, from which this one was "
                    "forked while it was on its way; wait for it there",
                    path));
  }

  void enter(std::string_view now) {
    MutexLock lock(mutex);
    phase = now;
  }

  void count(std::uint64_t bytes, std::uint64_t all) {
    MutexLock lock(mutex);
    latest = clock->monotonic();
    if (bytes == 0) began = latest;
    done = bytes;
    total = all;
  }
};

const std::string& SaveHandle::path() const { return state_->path; }

std::string SaveHandle::phase() const {
  if (state_->is_parents()) return "failed";
  MutexLock lock(state_->mutex);
  return state_->phase;
}

SaveProgress SaveHandle::progress() const {
  if (state_->is_parents()) return {};
  MutexLock lock(state_->mutex);
  const std::chrono::duration<double> spent = state_->latest - state_->began;
  const double rate = spent.count() > 0 ? static_cast<double>(state_->done) / spent.count() : 0;
  return {state_->done, state_->total, rate};
}

bool SaveHandle::done() const { return state_->is_parents() || state_->over; }

Result<SaveReport> SaveHandle::wait(Deadline deadline) const {
  if (state_->is_parents()) return state_->not_ours();
  if (state_->is_waiting_for_this_thread()) return state_->in_callback();
  if (!wait_for_end(deadline)) {
    return Error(Code::kDeadlineExceeded, "async/deadline",
                 fmt::format("the save to {} has not ended before the deadline", path()));
  }
  *state_->heard = true;
  return state_->result.wait();
}

bool SaveHandle::wait_for_end(Deadline deadline) const {
  if (state_->is_parents() || state_->is_waiting_for_this_thread()) return true;
  state_->result.wait(deadline).ignore_error("asked for by whoever wants it");
  if (!state_->result.done()) return false;
  state_->over.wait(false);  // a fork after this return finds it over
  return true;
}

void SaveHandle::forget() const { *state_->heard = true; }

void SaveHandle::on_end(Listener listener) const {
  if (state_->is_parents()) return listener(state_->not_ours());
  std::optional<Result<SaveReport>> ended;
  {
    MutexLock lock(state_->mutex);
    ended = state_->ended;
    if (!ended) return state_->listeners.push_back(std::move(listener));
  }
  listener(*ended);
}

SaveHandle SaveHandle::of_nothing(std::string path) {
  auto state = std::make_shared<State>();
  state->path = std::move(path);
  SaveReport report;
  report.path = state->path;
  state->end(std::move(report));
  return SaveHandle(std::move(state));
}

/// What the background needs, kept until it has ended.
class AsyncSave {
 public:
  AsyncSave(const std::string& path, SaveOptions options, std::shared_ptr<Runtime> runtime,
            SaveInternals internals)
      : runtime_(std::move(runtime)),
        in_flight_(path, runtime_->rank()),
        options_(std::move(options)),
        internals_(std::move(internals)),
        state_(std::make_shared<SaveHandle::State>()) {
    state_->path = path;
    state_->clock = &runtime_->clock();
  }

  SaveHandle handle() const { return SaveHandle(state_); }

  Result<void> begin(const std::vector<NamedTree>& trees) {
    CAIRN_TRY_ASSIGN(
        steps_, start_save(trees, state_->path, watched_options(), *runtime_, watched_internals()));
    CAIRN_TRY(steps_->begin());
    staging_.emplace(steps_->writers(), *runtime_);
    runtime_->watch_staging();
    return {};
  }

  Result<void> stage() {
    auto staged = without_exceptions([this] { return staging_->stage(); });
    if (!staged) staging_->fail(staged.error());
    MutexLock lock(mutex_);
    stage_ended_ = true;
    staged_ = staged.has_value();
    changed_.notify_all();
    return staged;
  }

  void run() {
    state_->runner = std::this_thread::get_id();
    auto result = without_exceptions([this] { return complete(); });
    if (!result) staging_->fail(result.error());
    take_down();
    in_flight_.landed();
    if (result && options_.committed) {
      auto after = without_exceptions([&] { return options_.committed(*result); });
      if (!after) result = std::move(after).error();
    }
    if (!result) {
      const auto told = without_exceptions([&]() -> Result<void> {
        tell_of(result.error());
        return {};
      });
      told.ignore_error("the handle has the error of the save");
    }
    state_->end(std::move(result));
  }

 private:
  Result<SaveReport> complete() {
    if (internals_.after && !internals_.after->done()) {
      state_->enter("waiting for the save before");
      internals_.after->wait_for_end();
    }
    return steps_
        ->complete([this](const ProgressSink& progress) { return staging_->write(progress); })
        .in([this] { return "saving " + state_->path; });
  }

  // What the call itself returns, and what its caller gave up, needs no telling.
  void tell_of(const Error& error) {
    if (is_the_calls() || given_up_) return;
    tell_at_exit(error, state_->heard);
    if (!internals_.waited_for)
      runtime_->log(LogLevel::kError, "save/failed", "a save failed: " + error.to_string());
  }

  bool is_the_calls() {
    MutexLock lock(mutex_);
    return !staged_;
  }

  // What a failed save leaves is removed before anybody hears of it.
  void take_down() {
    {
      MutexLock lock(mutex_);
      while (!stage_ended_) changed_.wait(mutex_);
    }
    staging_.reset();
    steps_.reset();
  }

  // A piece larger than the staging memory could never be copied.
  SaveOptions watched_options() {
    SaveOptions watched = options_;
    watched.chunk_bytes = std::min(watched.chunk_bytes, runtime_->staging().limit() / 2);
    watched.progress = [state = state_, user = options_.progress](std::uint64_t done,
                                                                  std::uint64_t total) {
      state->count(done, total);
      if (user) user(done, total);
    };
    return watched;
  }

  SaveInternals watched_internals() {
    SaveInternals watched = internals_;
    watched.hash_chunks = true;
    watched.guard = [this] {
      auto held = take_guard(internals_.guard);
      given_up_ = !held && held.error().code() == Code::kCancelled;
      return held;
    };
    watched.phase = [state = state_, other = internals_.phase](std::string_view phase) {
      state->enter(phase);
      if (other) other(phase);
    };
    return watched;
  }

  const std::shared_ptr<Runtime> runtime_;
  InFlight in_flight_;
  const SaveOptions options_;
  const SaveInternals internals_;
  const std::shared_ptr<SaveHandle::State> state_;
  std::unique_ptr<SaveSteps> steps_;
  std::optional<Staging> staging_;
  Mutex mutex_;
  CondVar changed_;
  bool stage_ended_ CAIRN_GUARDED_BY(mutex_) = false;
  bool staged_ CAIRN_GUARDED_BY(mutex_) = false;
  bool given_up_ = false;  // by the guard, on the thread of the background
};

Result<SaveHandle> save_async(const std::vector<NamedTree>& trees, const std::string& path,
                              const SaveOptions& options, std::shared_ptr<Runtime> runtime,
                              const SaveInternals* internals) {
  const auto save = std::make_shared<AsyncSave>(
      path, options, std::move(runtime), internals != nullptr ? *internals : SaveInternals());
  CAIRN_TRY(save->begin(trees).in([&] { return "saving " + path; }));
  SaveHandle handle = save->handle();
  run_in_background([save] { save->run(); });
  if (const auto staged = save->stage(); !staged) {
    const auto ended = handle.wait();
    return ended ? staged.error() : ended.error();
  }
  return handle;
}

}  // namespace cairn
