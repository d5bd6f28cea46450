// SPDX-License-Identifier: Apache-2.0
// Turns errors of Cairn into exceptions of Python, and releases the GIL in calls into Cairn.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <nanobind/nanobind.h>

#include "cairn/async/background.h"
#include "cairn/async/caught.h"
#include "cairn/async/mutex.h"
#include "cairn/base/result.h"

namespace cairn::python {

namespace nb = nanobind;

/// On its way to Python, where it is one of the classes of cairn._errors.
class Failure : public std::exception {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return error_.message().c_str(); }

 private:
  Error error_;
};

/// Makes Python see a Failure. Once, by the module.
void translate_failures();

/// A text for people from any bytes: names of files need not be UTF-8.
nb::object readable(const std::string& text);

/// The value, or an exception.
template <typename T>
T value_of(Result<T> result) {
  if (!result) throw Failure(std::move(result).error());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// Releases the GIL while it lives. At the end of the program, Python ends threads that ask for the
/// GIL again by unwinding them, which C++ code does not survive; such threads sleep forever
/// instead.
class Released {
 public:
  Released();
  ~Released();
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

/// Holds the GIL while it lives. At the end of the program it sleeps likewise.
class Acquired {
 public:
  Acquired();
  ~Acquired();
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_ = PyGILState_UNLOCKED;
};

/// Waits without the GIL until `ready`, which waits a moment and returns whether it is done. Throws
/// what a signal handler raised, such as KeyboardInterrupt after Ctrl-C.
template <typename Ready>
void wait_until(const Ready& ready) {
  for (;;) {
    {
      const Released released;
      if (ready()) return;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// Interval at which a wait checks for signals.
constexpr std::chrono::milliseconds kMoment{50};

/// Errands: calls into Python that work on another thread passes to the thread that waits for it.
/// Threading: safe.
class Errands {
 public:
  /// From the other thread: waits until the errand is done. Its exception becomes an error;
  /// `cancelled` (python/interrupted) if the waiting thread has left.
  Result<void> have_done(const std::function<void()>& errand);
  /// From the other thread: no more errands will come.
  void finish();
  /// From the other thread: has the waiting thread left?
  bool abandoned();

  /// In the waiting thread, with the GIL: runs errands until no more will come. Throws what a
  /// signal handler raised, such as KeyboardInterrupt after Ctrl-C; the work then continues, and
  /// its errands are refused.
  void attend();
  /// Throws the exception of an errand, if there was one.
  void rethrow() const;

 private:
  void run(const std::function<void()>& errand);

  const decltype(std::this_thread::get_id()) waiter_ = std::this_thread::get_id();
  Mutex mutex_;
  CondVar changed_;
  const std::function<void()>* errand_ CAIRN_GUARDED_BY(mutex_) = nullptr;
  std::optional<Result<void>> outcome_ CAIRN_GUARDED_BY(mutex_);
  bool finished_ CAIRN_GUARDED_BY(mutex_) = false;
  bool abandoned_ CAIRN_GUARDED_BY(mutex_) = false;
  std::exception_ptr raised_;  // by errands, in the thread that waits
};

/// While it lives, in_caller() of this thread uses these errands.
class ErrandScope {
 public:
  explicit ErrandScope(Errands& errands);
  ~ErrandScope();
  ErrandScope(const ErrandScope&) = delete;
  ErrandScope& operator=(const ErrandScope&) = delete;
};

/// Calls something with the GIL: in the thread that waits in apart() for this one, or here if there
/// is none. An exception of Python becomes `internal` (python/callback), and apart() throws it
/// again; a Failure becomes its error.
Result<void> in_caller(const std::function<void()>& errand);

/// Has the thread that waited in apart() for this one been interrupted?
bool caller_is_gone();

/// The program is ending: calls from threads other than this one are refused from now on.
void let_no_other_thread_begin();
/// Throws `cancelled` (python/exiting) if this is such a thread.
void check_may_begin();

/// Calls `work`, which returns a Result; a Failure becomes its error, another exception the error
/// of caught_error().
template <typename Work>
std::invoke_result_t<Work> answer_of(const Work& work) {
  try {
    return work();
  } catch (const Failure& failure) {
    return failure.error();
  } catch (...) {
    return caught_error();
  }
}

/// Runs `work` on another thread and waits for it. A signal ends the wait but not the work, which
/// must own all that it needs.
template <typename Work>
auto apart(Work work) {
  using Answer = std::invoke_result_t<Work>;
  struct Shared {
    explicit Shared(Work w) : work(std::move(w)) {}
    Work work;
    std::optional<Answer> answer;
    Errands errands;
  };
  check_may_begin();
  auto shared = std::make_shared<Shared>(std::move(work));
  {
    const Released released;
    run_aside([shared] {
      shared->answer.emplace(answer_of([&] {
        const ErrandScope scope(shared->errands);
        return shared->work();
      }));
      shared->errands.finish();
    });
  }
  shared->errands.attend();
  shared->errands.rethrow();
  return value_of(std::move(*shared->answer));
}

/// Runs `work`. In a single process its errors are thrown; with several ranks they are returned, so
/// that the save or load can pass them to the others.
std::optional<Error> refusal_of(const std::function<void()>& work, bool alone);

/// Keeps a Python object alive; the last copy may be destroyed without the GIL.
std::shared_ptr<const void> keep(nb::object object);
/// The object that is kept.
nb::handle object_of(const std::shared_ptr<const void>& kept);

}  // namespace cairn::python
