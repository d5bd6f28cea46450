// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/checkpointers.h"

#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/bindings.h"
#include "cairn/run/mark.h"

namespace cairn::python {

namespace {

void let_go(std::shared_ptr<Checkpointer> run) {
  // What watches the run may be about to say something to Python.
  const Released released;
  run.reset();
}

struct LoadingCall {
  std::string path;
  bool discover_latest = true;
  bool structured = false;
  bool fallback = false;
  bool required = false;  ///< no checkpoint is an error
};

LoadCheckpointOptions options_of(const LoadingCall& call, const LoadOptions& options) {
  return {.load = options,
          .path = call.path,
          .discover_latest = call.discover_latest,
          .structured = call.structured,
          .fallback = call.fallback};
}

nb::object load_checkpoint(PythonCheckpointer& self, const LoadCall& request,
                           const LoadingCall& call) {
  return self.load(
      request,
      [call](Checkpointer& run, const LoadOptions& options) -> Result<std::optional<Loaded>> {
        const LoadCheckpointOptions how = options_of(call, options);
        if (!call.required) return run.load_checkpoint_if_any(how);
        CAIRN_TRY_ASSIGN(auto loaded, run.load_checkpoint(how));
        return std::optional(std::move(loaded));
      });
}

nb::object load_pytree(PythonCheckpointer& self, const LoadCall& request, const LoadingCall& call,
                       bool load_treedef, bool discover_raise) {
  return self.load(
      request, [call, load_treedef, discover_raise](Checkpointer& run, const LoadOptions& options) {
        LoadCheckpointOptions how = options_of(call, options);
        how.load_treedef = load_treedef;
        how.discover_raise = discover_raise;
        return run.load_pytree(how);
      });
}

/// The error, if there is one, is taken only by a caller who still waits.
void wait_for_run(const PythonCheckpointer& self) {
  check_not_in_callback();
  wait_for_saves_of(self.manager());
  apart([run = self.run()]() -> Result<bool> {
    CAIRN_TRY(without_interruptions([&] { return run->wait_until_finished(); }));
    return true;
  });
}

void bind_loads_of(nb::class_<PythonCheckpointer>& bound) {
  bound
      .def(
          "load_checkpoint",
          [](PythonCheckpointer& self, const LoadCall& request, std::string path,
             bool discover_latest, bool structured, bool fallback, bool required) {
            return load_checkpoint(
                self, request, {std::move(path), discover_latest, structured, fallback, required});
          },
          nb::arg("request"), nb::kw_only(), nb::arg("path"), nb::arg("discover_latest"),
          nb::arg("structured"), nb::arg("fallback"), nb::arg("required"))
      .def(
          "load_pytree",
          [](PythonCheckpointer& self, const LoadCall& request, std::string path,
             bool discover_latest, bool fallback, bool load_treedef, bool discover_raise) {
            return load_pytree(self, request, {std::move(path), discover_latest, true, fallback},
                               load_treedef, discover_raise);
          },
          nb::arg("request"), nb::kw_only(), nb::arg("path"), nb::arg("discover_latest"),
          nb::arg("fallback"), nb::arg("load_treedef"), nb::arg("discover_raise"));
}

}  // namespace

PythonCheckpointer::PythonCheckpointer(CheckpointerOptions options,
                                       std::shared_ptr<PythonManager> manager)
    : options_(std::move(options)), manager_(std::move(manager)), run_(make_run()) {}

PythonCheckpointer::~PythonCheckpointer() { let_go(std::move(run_)); }

bool PythonCheckpointer::is_idle(std::int64_t step, bool force) {
  if (options_.now) return false;  // asked in Python
  const auto run = at_work();
  const Turns::Ticket ticket = turns_->take();
  if (!turns_->enter_at_once(ticket)) return false;
  const auto due = run->is_time(step, force);
  turns_->leave(ticket);
  return !value_of(due);
}

const std::shared_ptr<Checkpointer>& PythonCheckpointer::at_work() {
  // What has worked has a manager that has, and that stays.
  if (manager_->at_work() != options_.manager) {
    auto made = make_run();
    made->policy() = run_->policy();
    let_go(std::exchange(run_, std::move(made)));
  }
  return run_;
}

std::shared_ptr<Checkpointer> PythonCheckpointer::make_run() {
  CheckpointerOptions options = options_;
  options.manager = manager_->manager();
  auto made = value_of(Checkpointer::make(options, options.manager->runtime()));
  options_.manager = manager_->manager();
  return made;
}

void bind_checkpointers(nb::module_& module) {
  nb::class_<PythonCheckpointer> bound(module, "RunCheckpointer");
  bind_checkpointer_options(bound);
  bind_checkpointer_saves(bound);
  bind_loads_of(bound);
  module.def("step_directory", &step_directory, nb::arg("step"));
  bound
      .def("remove",
           [](PythonCheckpointer& self, const std::string& path) {
             self.at_work();
             self.call([path](Checkpointer& run) -> Result<bool> {
               CAIRN_TRY(run.queue_checkpoint_removal(path));
               return true;
             });
           })
      .def("wait_until_finished", &wait_for_run)
      .def("should_stop", [](const PythonCheckpointer& self) {
        return self.call([](Checkpointer& run) -> Result<bool> { return run.should_stop(); });
      });
}

}  // namespace cairn::python
