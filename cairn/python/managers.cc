// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/managers.h"

#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/manager/prefixes.h"
#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/coordinators.h"
#include "cairn/python/failure.h"
#include "cairn/python/runtime.h"
#include "cairn/python/trees.h"

namespace cairn::python {

namespace {

WhileSaving while_saving_of(const std::string& name) {
  if (name == "wait") return WhileSaving::kWait;
  if (name == "refuse") return WhileSaving::kRefuse;
  if (name == "queue") return WhileSaving::kQueue;
  throw Failure(Error(Code::kInvalidArgument, "python/while-saving",
                      "while_saving is \"wait\", \"refuse\" or \"queue\", not '" + name + "'"));
}

SaveHandle save_by_manager(PythonManager& self, const PythonTrees& trees, const std::string& path,
                           const nb::kwargs& options) {
  const SaveTreeOptions how{.save = save_options_of(options)};
  check_not_in_callback();
  const auto manager = self.at_work();
  return begin_apart([manager, given = give(trees, giving_for(*manager, how.save.extras)), path,
                      how](const CommitGuard& guard) {
    SaveInternals internals = given.internals;
    internals.guard = guard;
    return manager->save_checkpoint(given.trees, path, how, &internals);
  });
}

void check_for_errors(const PythonManager& self) {
  value_of(without_interruptions([&] { return self.manager()->check_for_errors(); }));
}

/// The error, if there is one, is taken only by a caller who still waits.
void wait_until_finished(const PythonManager& self) {
  check_not_in_callback();
  wait_for_saves_of(self.manager());
  check_for_errors(self);
}

}  // namespace

PythonManager::PythonManager()
    : manager_(std::make_shared<AsyncCheckpointManager>(AsyncManagerOptions{}, own_runtime())) {}

const std::shared_ptr<AsyncCheckpointManager>& PythonManager::at_work() {
  const auto where = runtime();
  // In the child of a fork a process that is alone has another runtime, and goes on with the old.
  if (where->coordinator() != manager_->runtime()->coordinator()) {
    if (has_worked_) {
      throw other_ranks(
          "the ranks of the job are others than when this manager or Checkpointer began to save or "
          "load; make a new one, on every rank");
    }
    manager_ = std::make_shared<AsyncCheckpointManager>(manager_->options(), where);
  }
  has_worked_ = true;
  return manager_;
}

void check_not_in_callback() {
  if (!is_background_thread()) return;
  throw Failure(Error(Code::kFailedPrecondition, "manager/in-callback",
                      "a callback of a save cannot save or wait for saves: it would wait for its "
                      "own; do it when the save has ended"));
}

Giving giving_for(const AsyncCheckpointManager& manager, const Json& extras) {
  const Runtime& where = *manager.runtime();
  const bool indexed = manager.is_enabled() && manager.options().use_tensorstore;
  return {
      .alone = where.ranks() == 1, .structured = indexed && where.rank() == 0, .extras = extras};
}

void wait_for_saves_of(const std::shared_ptr<AsyncCheckpointManager>& manager) {
  apart([manager]() -> Result<bool> {
    for (const SaveHandle& save : manager->saves_in_flight()) save.wait_for_end();
    return true;
  });
}

void bind_managers(nb::module_& module) {
  module.def("check_prefix_to_save",
             [](const std::string& prefix) { value_of(check_prefix_to_save(prefix)); });
  module.def("check_prefix_to_load",
             [](const std::string& prefix) { value_of(check_prefix_to_load(prefix)); });
  nb::class_<PythonManager>(module, "AsyncManager")
      .def(nb::init<>())
      .def(
          "configure",
          [](const PythonManager& self, std::optional<bool> enable, const nb::object& dtype,
             bool verbose, bool validate, bool compress, bool use_tensorstore, bool blocking,
             const std::string& while_saving, std::optional<std::uint64_t> shard_size,
             std::optional<double> timeout) {
            AsyncManagerOptions options{.enable = enable,
                                        .float_dtype = parse_dtype_argument(dtype),
                                        .verbose = verbose,
                                        .enable_validation = validate,
                                        .enable_compression = compress,
                                        .use_tensorstore = use_tensorstore,
                                        .blocking = blocking,
                                        .while_saving = while_saving_of(while_saving)};
            if (shard_size) options.shard_size = *shard_size;
            if (timeout) options.timeout = span_of(*timeout);
            self.manager()->set_options(options);
          },
          nb::kw_only(), nb::arg("enable").none(), nb::arg("dtype").none(), nb::arg("verbose"),
          nb::arg("validate"), nb::arg("compress"), nb::arg("use_tensorstore"), nb::arg("blocking"),
          nb::arg("while_saving"), nb::arg("shard_size").none(), nb::arg("timeout").none())
      .def("save", &save_by_manager, nb::arg("trees"), nb::arg("path"), nb::arg("options"))
      .def("wait_until_finished", &wait_until_finished)
      .def("check_for_errors", &check_for_errors)
      .def("saves_in_flight",
           [](const PythonManager& self) { return self.manager()->saves_in_flight(); });
}

}  // namespace cairn::python
