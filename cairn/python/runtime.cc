// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/runtime.h"

#include <utility>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/async/background.h"
#include "cairn/async/mutex.h"
#include "cairn/checkpoint/save/in_flight.h"
#include "cairn/python/failure.h"

namespace cairn::python {

namespace {

const char* level_name(LogLevel level) {
  if (level == LogLevel::kInfo) return "info";
  return level == LogLevel::kWarning ? "warning" : "error";
}

void log_to_python(const LogEntry& entry) {
  if (!Py_IsInitialized()) return;
  nb::gil_scoped_acquire acquire;
  try {
    nb::module_::import_("cairn._log")
        .attr("emit")(level_name(entry.level), entry.event, entry.message.c_str());
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("cairn's log");
  }
}

/// Never destroyed: saves in flight stand on it until the process ends.
struct Place {
  Mutex mutex;
  std::shared_ptr<Runtime> runtime CAIRN_GUARDED_BY(mutex);
};
Place* place = new Place;

/// In the child of a fork: the threads of the parent's runtime are not here.
void forget_runtime() { place = new Place; }

}  // namespace

std::shared_ptr<Runtime> runtime() {
  MutexLock lock(place->mutex);
  if (!place->runtime)
    place->runtime = std::make_shared<Runtime>(RuntimeOptions{.log = log_to_python});
  return place->runtime;
}

Json json_of(const std::string& text) {
  if (text.empty()) return {};
  auto parsed = parse_json(text);
  if (parsed) return *std::move(parsed);
  throw Failure(Error(Code::kInvalidArgument, "python/json", parsed.error().to_string()));
}

ProgressSink progress_of(const nb::object& function) {
  if (function.is_none()) return {};
  const auto kept = keep(function);
  return [kept](std::uint64_t done, std::uint64_t total) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire acquire;
    const nb::handle call(static_cast<PyObject*>(const_cast<void*>(kept.get())));
    try {
      call(done, total);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable(call);
    }
  };
}

Result<void> call_back(const std::shared_ptr<const void>& function) {
  if (!Py_IsInitialized()) return {};
  nb::gil_scoped_acquire acquire;
  try {
    nb::handle(static_cast<PyObject*>(const_cast<void*>(function.get())))();
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
      nb::call_guard<nb::gil_scoped_release>());
  module.def("places_in_flight", &places_in_flight);
}

}  // namespace cairn::python
