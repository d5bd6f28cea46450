// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/failure.h"

#include <map>
#include <string>
#include <thread>

namespace cairn::python {

namespace {

/// Who waits for which thread. Never destroyed: threads may outlive everything else.
class Callers {
 public:
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

Callers& callers() {
  static Callers* const all = new Callers;
  return *all;
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
  }
}

}  // namespace

void translate_failures() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Failure& failure) {
      const Error& error = failure.error();
      const nb::object exception =
          nb::module_::import_("cairn._errors")
              .attr("error_of")(std::string(code_name(error.code())).c_str(),
                                std::string(error.reason()).c_str(), error.where().c_str(),
                                error.to_string().c_str());
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    }
  });
}

Result<void> Errands::have_done(const std::function<void()>& errand) {
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
      nb::gil_scoped_release release;
      MutexLock lock(mutex_);
      if (!finished_ && (errand_ == nullptr || outcome_))
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kMoment);
      if (finished_) return;
      if (errand_ != nullptr && !outcome_) errand = errand_;
    }
    if (errand != nullptr) run(*errand);
    if (PyErr_CheckSignals() == 0) continue;
    {
      nb::gil_scoped_release release;
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

ErrandScope::ErrandScope(Errands& errands) { callers().add(errands); }
ErrandScope::~ErrandScope() { callers().remove(); }

Result<void> in_caller(const std::function<void()>& errand) {
  if (Errands* const caller = callers().find()) return caller->have_done(errand);
  if (!Py_IsInitialized()) return {};
  nb::gil_scoped_acquire acquire;
  return done_here(errand, nullptr);
}

bool caller_is_gone() {
  Errands* const caller = callers().find();
  return caller != nullptr && caller->abandoned();
}

std::shared_ptr<const void> keep(nb::object object) {
  return {object.release().ptr(), [](PyObject* kept) {
            // An interpreter that is gone has let go of everything.
            if (!Py_IsInitialized()) return;
            nb::gil_scoped_acquire acquire;
            Py_DECREF(kept);
          }};
}

}  // namespace cairn::python
