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

#include "cairn/python/arrays.h"
#include "cairn/python/bindings.h"
#include "cairn/python/checkpointers.h"
#include "cairn/python/runtime.h"

namespace cairn::python {

namespace {

using Wishes = std::vector<std::pair<Parts, std::vector<PartitionSpec::Entry>>>;
using Axes = std::vector<std::pair<std::string, Index>>;

CheckpointCallback callback_of(const nb::handle& function) {
  return [kept = keep(nb::borrow(function))](const std::string& path, const Mesh*,
                                             const Json& metadata) {
    return in_caller([&] { object_of(kept)(path, dump_json(metadata)); });
  };
}

struct StepCall {
  std::int64_t step = 0;
  nb::object tree;  ///< None: the callbacks save
  bool force = false;
  nb::list callbacks;
  std::string extras;
  std::string metrics;
  nb::object progress;
};

/// Asked when it is time. Of several ranks, one that cannot say what to save saves a refusal.
Result<Given> give_aside(const std::shared_ptr<const void>& tree, const Giving& how) {
  Given given;
  const auto asked = in_caller([&] { given = give({{"", nb::borrow(object_of(tree))}}, how); });
  if (asked) return given;
  if (how.alone) return asked.error();
  return Given{.beside = {.refusal = asked.error()}};
}

std::optional<SaveHandle> on_step(PythonCheckpointer& self, const StepCall& call) {
  if (self.is_idle(call.step, call.force)) return std::nullopt;
  StepOptions options{.force = call.force,
                      .extras = json_of(call.extras),
                      .metrics = json_of(call.metrics),
                      .progress = progress_of(call.progress)};
  for (const nb::handle callback : call.callbacks)
    options.true_callbacks.push_back(callback_of(callback));
  return self.save([options, step = call.step, kept = keep(call.tree),
                    is_empty = call.tree.is_none()](Checkpointer& run, const CommitGuard& guard) {
    StepOptions adjusted = options;
    if (is_empty) return run.on_step(step, adjusted);
    const auto beside = std::make_shared<Beside>();
    adjusted.adjust = adjustment(guard, beside);
    const auto trees = [&]() -> Result<std::vector<NamedTree>> {
      Giving how = giving_for(run.manager(), "");
      how.structured = false;
      CAIRN_TRY_ASSIGN(Given given, give_aside(kept, how));
      *beside = std::move(given.beside);
      return std::move(given.trees);
    };
    return run.on_step(step, Checkpointer::Trees(trees), adjusted);
  });
}

struct SavingCall {
  nb::object tree;
  std::string destination;
  std::optional<std::int64_t> step;
  bool is_temporary = false;
  std::string prefix;
  bool structured = false;
  nb::object dtype;
  std::string extras;
  std::string metrics;
  bool write_index = true;
  Wishes wishes;
  Axes mesh;
  nb::object committed;
  nb::object progress;
};

/// How arrays are to lie when they are loaded without a word about it.
SaveAdjustment wishing(const SavingCall& call) {
  SpecTree wishes;
  for (const auto& [parts, spec] : call.wishes) wishes.emplace(KeyPath(parts), PartitionSpec(spec));
  std::vector<MeshAxis> mesh;
  for (const auto& [name, size] : call.mesh) mesh.push_back({name, size});
  return [wishes = std::move(wishes), mesh = std::move(mesh)](SaveOptions& options) {
    options.wishes = wishes;
    options.mesh = mesh;
  };
}

SaveCheckpointOptions options_of(const SavingCall& call) {
  SaveCheckpointOptions options{.step = call.step,
                                .is_temporary = call.is_temporary,
                                .prefix = call.prefix,
                                .structured = call.structured,
                                .dtype = parse_dtype_argument(call.dtype),
                                .extras = json_of(call.extras),
                                .metrics = json_of(call.metrics),
                                .write_index = call.write_index,
                                .progress = progress_of(call.progress)};
  if (!call.committed.is_none())
    options.commit_callback = [kept = keep(call.committed)] { return call_back(kept); };
  return options;
}

/// With a step, or a destination in the run: save_checkpoint(). Otherwise save_pytree().
SaveHandle save(PythonCheckpointer& self, const SavingCall& call, bool in_run) {
  const Giving how = giving_for(self.at_work()->manager(), call.extras);
  Given given = give({{call.prefix, call.tree}}, how);
  Tree tree = given.beside.refusal ? Tree::none() : std::move(given.trees.front().second);
  const auto beside = std::make_shared<const Beside>(std::move(given.beside));
  return self.save([options = options_of(call), tree = std::move(tree), beside, in_run,
                    destination = call.destination,
                    wishing = wishing(call)](Checkpointer& run, const CommitGuard& guard) {
    SaveCheckpointOptions adjusted = options;
    adjusted.adjust = [adjust = adjustment(guard, beside), wishing](SaveOptions& save) {
      adjust(save);
      wishing(save);
    };
    return in_run ? run.save_checkpoint(tree, destination, adjusted)
                  : run.save_pytree(tree, destination, adjusted);
  });
}

}  // namespace

void bind_checkpointer_saves(nb::class_<PythonCheckpointer>& bound) {
  bound
      .def(
          "on_step",
          [](PythonCheckpointer& self, std::int64_t step, nb::object tree, bool force,
             nb::list callbacks, std::string extras, std::string metrics, nb::object progress) {
            return on_step(self, {step, std::move(tree), force, std::move(callbacks),
                                  std::move(extras), std::move(metrics), std::move(progress)});
          },
          nb::arg("step"), nb::arg("tree").none(), nb::kw_only(), nb::arg("force"),
          nb::arg("callbacks"), nb::arg("extras"), nb::arg("metrics"), nb::arg("progress").none())
      .def(
          "save",
          [](PythonCheckpointer& self, nb::object tree, std::string destination, bool in_run,
             std::optional<std::int64_t> step, bool is_temporary, std::string prefix,
             bool structured, nb::object dtype, std::string extras, std::string metrics,
             bool write_index, Wishes wishes, Axes mesh, nb::object committed,
             nb::object progress) {
            return save(
                self,
                {std::move(tree), std::move(destination), step, is_temporary, std::move(prefix),
                 structured, std::move(dtype), std::move(extras), std::move(metrics), write_index,
                 std::move(wishes), std::move(mesh), std::move(committed), std::move(progress)},
                in_run);
          },
          nb::arg("tree").none(), nb::arg("destination"), nb::kw_only(), nb::arg("in_run"),
          nb::arg("step").none(), nb::arg("is_temporary"), nb::arg("prefix"), nb::arg("structured"),
          nb::arg("dtype").none(), nb::arg("extras"), nb::arg("metrics"), nb::arg("write_index"),
          nb::arg("wishes"), nb::arg("mesh"), nb::arg("committed").none(),
          nb::arg("progress").none());
}

}  // namespace cairn::python
