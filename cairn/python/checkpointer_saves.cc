// SPDX-License-Identifier: Apache-2.0
// How a run is saved from Python: at its steps, or whenever it is called for.
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/python/bindings.h"
#include "cairn/python/checkpointers.h"
#include "cairn/python/runtime.h"

namespace cairn::python {

namespace {

CheckpointCallback callback_of(const nb::handle& function) {
  return [kept = keep(nb::borrow(function))](const std::string& path, const Mesh*,
                                             const Json& metadata) {
    return in_caller([&] { object_of(kept)(path, dump_json(metadata)); });
  };
}

/// Asked when it is time. Of several ranks, one that cannot say what to save saves a refusal.
Result<Given> give_aside(const std::shared_ptr<const void>& tree, const Giving& how) {
  Given given;
  const auto asked = in_caller([&] { given = give({{"", nb::borrow(object_of(tree))}}, how); });
  if (asked) return given;
  if (how.alone) return asked.error();
  return Given{.internals = {.refusal = asked.error()}};
}

std::optional<SaveHandle> on_step(PythonCheckpointer& self, std::int64_t step,
                                  const nb::object& tree, const StepOptions& options) {
  return self.save([options, step, kept = keep(tree), is_empty = tree.is_none()](
                       Checkpointer& run, const CommitGuard& guard) {
    if (is_empty) return run.on_step(step, options);
    SaveInternals internals{.guard = guard};
    const auto trees = [&]() -> Result<std::vector<NamedTree>> {
      Giving how = giving_for(run.manager(), {});
      how.structured = false;
      CAIRN_TRY_ASSIGN(Given given, give_aside(kept, how));
      internals.refusal = std::move(given.internals.refusal);
      return std::move(given.trees);
    };
    return run.on_step(step, Checkpointer::Trees(trees), options, &internals);
  });
}

/// In the run: save_checkpoint(). Otherwise save_pytree().
SaveHandle save(PythonCheckpointer& self, const nb::object& tree, const std::string& destination,
                bool in_run, const SaveCheckpointOptions& options) {
  const Giving how = giving_for(self.at_work()->manager(), options.save.extras);
  Given given = give({{options.prefix, tree}}, how);
  if (given.internals.refusal) given.trees = {{options.prefix, Tree::none()}};
  return self.save([options, given = std::move(given), in_run, destination](
                       Checkpointer& run, const CommitGuard& guard) {
    SaveInternals internals = given.internals;
    internals.guard = guard;
    const Tree& saved = given.trees.front().second;
    return in_run ? run.save_checkpoint(saved, destination, options, &internals)
                  : run.save_pytree(saved, destination, options, &internals);
  });
}

}  // namespace

void bind_checkpointer_saves(nb::class_<PythonCheckpointer>& bound) {
  bound
      .def(
          "on_step",
          [](PythonCheckpointer& self, std::int64_t step, const nb::object& tree, bool force,
             const nb::list& callbacks, const std::string& metrics,
             const nb::kwargs& save) -> std::optional<SaveHandle> {
            if (self.is_idle(step, force)) return std::nullopt;
            StepOptions options{
                .force = force, .metrics = json_of(metrics), .save = save_options_of(save)};
            for (const nb::handle callback : callbacks)
              options.true_callbacks.push_back(callback_of(callback));
            return on_step(self, step, tree, options);
          },
          nb::arg("step"), nb::arg("tree").none(), nb::kw_only(), nb::arg("force"),
          nb::arg("callbacks"), nb::arg("metrics"), nb::arg("options"))
      .def(
          "save",
          [](PythonCheckpointer& self, const nb::object& tree, const std::string& destination,
             bool in_run, bool is_temporary, std::string prefix, bool structured,
             const std::string& metrics, const nb::kwargs& options) {
            return save(self, tree, destination, in_run,
                        {.save = save_options_of(options),
                         .is_temporary = is_temporary,
                         .prefix = std::move(prefix),
                         .structured = structured,
                         .metrics = json_of(metrics)});
          },
          nb::arg("tree").none(), nb::arg("destination"), nb::kw_only(), nb::arg("in_run"),
          nb::arg("is_temporary"), nb::arg("prefix"), nb::arg("structured"), nb::arg("metrics"),
          nb::arg("options"));
}

}  // namespace cairn::python
