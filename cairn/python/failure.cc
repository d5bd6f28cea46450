// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/failure.h"

#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <nanobind/stl/string.h>
#include <unistd.h>

#include "cairn/async/per_process.h"

namespace cairn::python {

namespace {

/// Who waits for which thread.
class Callers {
 public:
  static Callers& of_this_process() { return PerProcess<Callers>::get(); }

  void add(Errands& errands) {
    MutexLock lock(mutex_);
    waiting_[std::this_thread::get_id()] = &errands;
  }
  void remove() {
    MutexLock lock(mutex_);
    waiting_.erase(std::this_thread::get_id());
  }
  /// Null: nobody waits for this thread.
  Errands* find() {
    MutexLock lock(mutex_);
    const auto found = waiting_.find(std::this_thread::get_id());
    return found == waiting_.end() ? nullptr : found->second;
  }

 private:
  Mutex mutex_;
  std::map<decltype(std::this_thread::get_id()), Errands*> waiting_ CAIRN_GUARDED_BY(mutex_);
};

/// The one that may still begin something; none: all may.
std::atomic<decltype(std::this_thread::get_id())> last_thread{};

[[noreturn]] void sleep_until_the_end() {
  for (;;) ::pause();
}

Result<void> done_here(const std::function<void()>& errand, std::exception_ptr* raised) {
  try {
    errand();
    return {};
  } catch (const Failure& failure) {
    return failure.error();
  } catch (nb::python_error& error) {
    if (raised != nullptr) *raised = std::current_exception();
    return Error(Code::kInternal, "python/callback",
                 std::string("the callback raised ") + error.what());
  } catch (...) {
    return caught_error();
  }
}

}  // namespace

nb::object readable(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

Released::Released() : state_(PyEval_SaveThread()) {}

Released::~Released() {
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    sleep_until_the_end();
  }
}

Acquired::Acquired() {
  try {
    state_ = PyGILState_Ensure();
  } catch (...) {
    sleep_until_the_end();
  }
}

Acquired::~Acquired() { PyGILState_Release(state_); }

void let_no_other_thread_begin() { last_thread = std::this_thread::get_id(); }

void check_may_begin() {
  const auto last = last_thread.load();
  if (last == decltype(last)() || last == std::this_thread::get_id()) return;
  throw Failure(Error(Code::kCancelled, "python/exiting",
                      "the program is ending: its other threads can no longer save or load"));
}

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const Error& error = failure.error();
      const nb::object exception =
          nb::module_::import_("cairn._errors")
              .attr("error_of")(std::string(code_name(error.code())), std::string(error.reason()),
                                readable(error.where()), readable(error.to_string()));
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

Result<void> Errands::have_done(const std::function<void()>& errand) {
  // There was no thread to be had for the work: whoever would wait for it does it.
  if (std::this_thread::get_id() == waiter_) {
    const Acquired acquired;
    return done_here(errand, &raised_);
  }
  MutexLock lock(mutex_);
  if (!abandoned_) {
    errand_ = &errand;
    outcome_.reset();
    changed_.notify_all();
    while (!outcome_ && !abandoned_) changed_.wait(mutex_);
    errand_ = nullptr;
  }
  if (outcome_ && !abandoned_) return *outcome_;
  return Error(Code::kCancelled, "python/interrupted", "the call was interrupted");
}

void Errands::finish() {
  MutexLock lock(mutex_);
  finished_ = true;
  changed_.notify_all();
}

bool Errands::abandoned() {
  MutexLock lock(mutex_);
  return abandoned_;
}

void Errands::attend() {
  for (;;) {
    const std::function<void()>* errand = nullptr;
    {
      const Released released;
      MutexLock lock(mutex_);
      if (!finished_ && (errand_ == nullptr || outcome_))
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kMoment);
      if (finished_) return;
      if (errand_ != nullptr && !outcome_) errand = errand_;
    }
    if (errand != nullptr) run(*errand);
    if (PyErr_CheckSignals() == 0) continue;
    {
      const Released released;
      MutexLock lock(mutex_);
      abandoned_ = true;
      changed_.notify_all();
    }
    throw nb::python_error();
  }
}

void Errands::run(const std::function<void()>& errand) {
  const Result<void> done = done_here(errand, &raised_);
  MutexLock lock(mutex_);
  outcome_.emplace(done);
  changed_.notify_all();
}

void Errands::rethrow() const {
  if (raised_) std::rethrow_exception(raised_);
}

ErrandScope::ErrandScope(Errands& errands) { Callers::of_this_process().add(errands); }
ErrandScope::~ErrandScope() { Callers::of_this_process().remove(); }

Result<void> in_caller(const std::function<void()>& errand) {
  if (Errands* const caller = Callers::of_this_process().find()) return caller->have_done(errand);
  if (!Py_IsInitialized()) return {};
  const Acquired acquired;
  return done_here(errand, nullptr);
}

bool caller_is_gone() {
  Errands* const caller = Callers::of_this_process().find();
  return caller != nullptr && caller->abandoned();
}

std::optional<Error> refusal_of(const std::function<void()>& work, bool alone) {
  try {
    work();
    return std::nullopt;
  } catch (const Failure& failure) {
    if (alone) throw;
    return failure.error();
  } catch (const nb::python_error& raised) {
    if (alone || !raised.matches(PyExc_Exception)) throw;
    return Error(Code::kInvalidArgument, "python/unsupported-leaf",
                 "a leaf raised " + nb::cast<std::string>(nb::repr(raised.value())));
  }
}

std::shared_ptr<const void> keep(nb::object object) {
  return {object.release().ptr(), [](PyObject* kept) {
            // An interpreter that is gone has let go of everything.
            if (!Py_IsInitialized()) return;
            const Acquired acquired;
            Py_DECREF(kept);
          }};
}

nb::handle object_of(const std::shared_ptr<const void>& kept) {
  return {static_cast<PyObject*>(const_cast<void*>(kept.get()))};
}

}  // namespace cairn::python
