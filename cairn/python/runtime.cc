// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/runtime.h"

#include <algorithm>
#include <utility>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/async/background.h"
#include "cairn/async/mutex.h"
#include "cairn/python/bindings.h"
#include "cairn/python/coordinators.h"
#include "cairn/python/failure.h"
#include "cairn/runtime/in_flight.h"

namespace cairn::python {

namespace {

const char* level_name(LogLevel level) {
  if (level == LogLevel::kInfo) return "info";
  return level == LogLevel::kWarning ? "warning" : "error";
}

void log_to_python(const LogEntry& entry) {
  if (!Py_IsInitialized()) return;
  const Acquired acquired;
  try {
    nb::module_::import_("cairn._log")
        .attr("emit")(level_name(entry.level), entry.event, readable(entry.message));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("cairn's log");
  }
}

/// Never destroyed: saves in flight stand on it until the process ends.
struct Runtimes {
  Mutex mutex;
  std::shared_ptr<Runtime> alone CAIRN_GUARDED_BY(mutex);
  std::shared_ptr<Runtime> together CAIRN_GUARDED_BY(mutex);  ///< null: nobody else is known
};
Runtimes* runtimes = new Runtimes;

std::shared_ptr<Runtime> make_runtime(std::shared_ptr<coord::Coordinator> coordinator) {
  struct Job {
    std::shared_ptr<coord::Coordinator> coordinator;
    Runtime runtime;
  };
  coord::Coordinator* const it = coordinator.get();
  const std::shared_ptr<Job> job(
      new Job{std::move(coordinator), Runtime({.coordinator = it, .log = log_to_python})});
  return {job, &job->runtime};
}

std::shared_ptr<Runtime> present(Runtimes& here) CAIRN_REQUIRES(here.mutex) {
  if (here.together) return here.together;
  if (!here.alone) here.alone = make_runtime(nullptr);
  return here.alone;
}

/// In the child of a fork: the threads of the parent's runtime are not here.
void forget_runtime() { runtimes = new Runtimes; }

}  // namespace

std::shared_ptr<Runtime> runtime() {
  const nb::object chosen = nb::module_::import_("cairn._ranks").attr("chosen")();
  const auto coordinator = chosen.is_none() ? nullptr : coordinator_of(chosen);
  MutexLock lock(runtimes->mutex);
  if (!coordinator) {
    runtimes->together = nullptr;
  } else if (!runtimes->together || runtimes->together->coordinator() != coordinator.get()) {
    runtimes->together = make_runtime(coordinator);
  }
  return present(*runtimes);
}

std::shared_ptr<Runtime> own_runtime() {
  MutexLock lock(runtimes->mutex);
  return present(*runtimes);
}

Json json_of(const std::string& text) {
  if (text.empty()) return {};
  auto parsed = parse_json(text);
  if (parsed) return *std::move(parsed);
  throw Failure(Error(Code::kInvalidArgument, "python/json", parsed.error().to_string()));
}

std::chrono::nanoseconds span_of(double seconds) {
  constexpr double kMost = 1e9;  // some thirty years
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kMost)));
}

ProgressSink progress_of(const nb::object& function) {
  if (function.is_none()) return {};
  const auto kept = keep(function);
  return [kept](std::uint64_t done, std::uint64_t total) {
    if (!Py_IsInitialized()) return;
    const Acquired acquired;
    const nb::handle call = object_of(kept);
    try {
      call(done, total);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(call);
    }
  };
}

Result<void> call_back(const std::shared_ptr<const void>& function) {
  if (!Py_IsInitialized()) return {};
  const Acquired acquired;
  try {
    object_of(function)();
    return {};
  } catch (nb::python_error& error) {
    return Error(Code::kInternal, "python/callback",
                 std::string("the callback raised ") + error.what());
  }
}

void bind_runtime(nb::module_& module) {
  module.def("forget_runtime", &forget_runtime);
  module.def(
      "wait_for_background", [] { return wait_for_background_until(Deadline::in(kMoment)); },
      nb::call_guard<Released>());
  module.def("let_no_other_thread_begin", &let_no_other_thread_begin);
  module.def("places_in_flight", &places_in_flight);
}

}  // namespace cairn::python
