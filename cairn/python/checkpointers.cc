// SPDX-License-Identifier: Apache-2.0
// The Checkpointer in Python's hands. Whatever it does is done aside; its clock and the callbacks
// that save are called by the thread that waits.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/python/arrays.h"
#include "cairn/python/loads.h"
#include "cairn/python/managers.h"
#include "cairn/python/runtime.h"
#include "cairn/python/turns.h"

namespace cairn::python {

namespace {

using Nanoseconds = std::int64_t;
using Wishes = std::vector<std::pair<Parts, std::vector<PartitionSpec::Entry>>>;
using Axes = std::vector<std::pair<std::string, Index>>;

nb::handle object_of(const std::shared_ptr<const void>& kept) {
  return {static_cast<PyObject*>(const_cast<void*>(kept.get()))};
}

Clock::Wall wall_of(Nanoseconds time) {
  return Clock::Wall(
      std::chrono::duration_cast<Clock::Wall::duration>(std::chrono::nanoseconds(time)));
}

Nanoseconds time_of(Clock::Wall wall) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wall.time_since_epoch()).count();
}

/// A function that says nanoseconds; while it cannot, the time is the machine's.
std::function<Clock::Wall()> clock_of(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = keep(function)] {
    Clock::Wall now = system_clock().wall();
    in_caller([&] {
      now = wall_of(nb::cast<Nanoseconds>(object_of(kept)()));
    }).ignore_error("the callback's exception is raised by its caller");
    return now;
  };
}

CheckpointCallback callback_of(const nb::handle& function) {
  return [kept = keep(nb::borrow(function))](const std::string& path, const Mesh*,
                                             const Json& metadata) {
    return in_caller([&] { object_of(kept)(path, dump_json(metadata)); });
  };
}

template <typename T>
std::optional<T> attribute(const nb::object& object, const char* name) {
  return nb::cast<std::optional<T>>(object.attr(name));
}

RetentionRules rules_of(const nb::object& rules) {
  if (rules.is_none()) return {};
  return {.keep_last_n = attribute<std::int64_t>(rules, "keep_last_n"),
          .keep_every_n = attribute<std::int64_t>(rules, "keep_every_n"),
          .best_k = attribute<std::int64_t>(rules, "best_k"),
          .metric = attribute<std::string>(rules, "metric").value_or(""),
          .mode = nb::cast<std::string>(rules.attr("mode")) == "max" ? MetricMode::kMax
                                                                     : MetricMode::kMin,
          .max_bytes = attribute<std::uint64_t>(rules, "max_bytes"),
          .min_free_bytes = attribute<std::uint64_t>(rules, "min_free_bytes"),
          .keep_temporary = nb::cast<bool>(rules.attr("keep_temporary"))};
}

std::shared_ptr<SignalWatch> watch_of(const std::vector<int>& save,
                                      const std::vector<int>& save_and_stop) {
  if (save.empty() && save_and_stop.empty()) return nullptr;
  return value_of(SignalWatch::make({.save = save, .save_and_stop = save_and_stop}));
}

using Intervals = std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>>;

std::vector<CheckpointInterval> intervals_of(const Intervals& pairs) {
  std::vector<CheckpointInterval> intervals;
  for (const auto& [every, until] : pairs) intervals.push_back({every, until});
  return intervals;
}

std::optional<std::chrono::nanoseconds> span_of(std::optional<Nanoseconds> span) {
  return span ? std::optional(std::chrono::nanoseconds(*span)) : std::nullopt;
}

/// Python's RunCheckpointer.
class PythonCheckpointer {
 public:
  PythonCheckpointer(CheckpointerOptions options, std::shared_ptr<PythonManager> manager)
      : options_(std::move(options)), manager_(std::move(manager)), run_(make_run()) {}
  ~PythonCheckpointer() { let_go(std::move(run_)); }

  template <typename Work>
  auto call(Work work) const {
    return in_turn(turns_, [&](const auto& wrap) {
      return apart(wrap([run = run_, work = std::move(work)] { return work(*run); }));
    });
  }

  /// A step that saves nothing is over with this, without a thread aside; false: not known.
  bool is_idle(std::int64_t step, bool force) {
    if (options_.now) return false;  // asked in Python
    const auto run = at_work();
    const Turns::Ticket ticket = turns_->take();
    if (!turns_->enter_at_once(ticket)) return false;
    const auto due = run->is_time(step, force);
    turns_->leave(ticket);
    return !value_of(due);
  }

  /// `begin(run, adjustment)` begins a save.
  template <typename Begin>
  auto save(Begin begin) {
    return in_turn(turns_, [&](const auto& wrap) {
      return begin_apart(wrap([run = at_work(), begin = std::move(begin)](
                                  const CommitGuard& guard) { return begin(*run, guard); }));
    });
  }

  /// `load_it(run, options)` loads something, or nothing.
  template <typename Load>
  nb::object load(const LoadCall& call, Load load_it) {
    return in_turn(turns_, [&](const auto& wrap) {
      return load_tree(call, wrap([run = at_work(), load_it](const LoadOptions& options) {
                         return load_it(*run, options);
                       }));
    });
  }

  /// As PythonManager::at_work().
  const std::shared_ptr<Checkpointer>& at_work() {
    // What has worked has a manager that has, and that stays.
    if (manager_->at_work() != options_.manager) {
      auto made = make_run();
      made->policy() = run_->policy();
      let_go(std::exchange(run_, std::move(made)));
    }
    return run_;
  }

  const std::shared_ptr<AsyncCheckpointManager>& manager() const { return options_.manager; }
  const std::shared_ptr<Checkpointer>& run() const { return run_; }

 private:
  std::shared_ptr<Checkpointer> make_run() {
    CheckpointerOptions options = options_;
    options.manager = manager_->manager();
    auto made = value_of(Checkpointer::make(options, options.manager->runtime()));
    options_.manager = manager_->manager();
    return made;
  }
  static void let_go(std::shared_ptr<Checkpointer> run) {
    // What watches the run may be about to say something to Python.
    const Released released;
    run.reset();
  }

  CheckpointerOptions options_;
  const std::shared_ptr<PythonManager> manager_;
  std::shared_ptr<Checkpointer> run_;
  const std::shared_ptr<Turns> turns_ = std::make_shared<Turns>();
};

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

struct LoadingCall {
  std::string path;
  bool discover_latest = true;
  bool structured = false;
  bool fallback = false;
};

LoadCheckpointOptions options_of(const LoadingCall& call, const LoadOptions& options) {
  return {.load = options,
          .path = call.path,
          .discover_latest = call.discover_latest,
          .structured = call.structured,
          .fallback = call.fallback};
}

nb::object load_checkpoint_if_any(PythonCheckpointer& self, const LoadCall& request,
                                  const LoadingCall& call) {
  return self.load(request, [call](Checkpointer& run, const LoadOptions& options) {
    return run.load_checkpoint_if_any(options_of(call, options));
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
  wait_for_saves_of(self.manager());
  apart([run = self.run()]() -> Result<bool> {
    CAIRN_TRY(without_interruptions([&] { return run->wait_until_finished(); }));
    return true;
  });
}

void bind_calls(nb::class_<PythonCheckpointer>& bound) {
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
          nb::arg("progress").none())
      .def(
          "load_checkpoint_if_any",
          [](PythonCheckpointer& self, const LoadCall& request, std::string path,
             bool discover_latest, bool structured, bool fallback) {
            return load_checkpoint_if_any(self, request,
                                          {std::move(path), discover_latest, structured, fallback});
          },
          nb::arg("request"), nb::kw_only(), nb::arg("path"), nb::arg("discover_latest"),
          nb::arg("structured"), nb::arg("fallback"))
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

void bind_checkpointers(nb::module_& module) {
  nb::class_<PythonCheckpointer> bound(module, "RunCheckpointer");
  bound.def(
      "__init__",
      [](PythonCheckpointer* self, std::string base_path, std::optional<Nanoseconds> save_interval,
         const Intervals& step_policies, std::shared_ptr<PythonManager> manager,
         const nb::object& now, bool delete_old_temp_checkpoints, const nb::object& retention,
         std::string run_id, bool take_over, bool watch_requests, const std::vector<int>& save_on,
         const std::vector<int>& stop_on, Nanoseconds stop_timeout, double agreement_share,
         std::string metrics_path) {
        CheckpointerOptions options{.base_path = std::move(base_path),
                                    .save_interval = span_of(save_interval),
                                    .step_policies = intervals_of(step_policies),
                                    .now = clock_of(now),
                                    .delete_old_temp_checkpoints = delete_old_temp_checkpoints,
                                    .retention = rules_of(retention),
                                    .run_id = std::move(run_id),
                                    .take_over = take_over,
                                    .watch_requests = watch_requests,
                                    .signals = watch_of(save_on, stop_on),
                                    .stop_timeout = std::chrono::nanoseconds(stop_timeout),
                                    .agreement_share = agreement_share,
                                    .metrics_path = std::move(metrics_path)};
        new (self) PythonCheckpointer(std::move(options), std::move(manager));
      },
      nb::kw_only(), nb::arg("base_path"), nb::arg("save_interval").none(),
      nb::arg("step_policies"), nb::arg("manager"), nb::arg("now").none(),
      nb::arg("delete_old_temp_checkpoints"), nb::arg("retention").none(), nb::arg("run_id"),
      nb::arg("take_over"), nb::arg("watch_requests"), nb::arg("save_on"), nb::arg("stop_on"),
      nb::arg("stop_timeout"), nb::arg("agreement_share"), nb::arg("metrics_path"));
  bind_calls(bound);
  bound
      .def("remove",
           [](PythonCheckpointer& self, const std::string& path) {
             self.at_work();
             self.call([path](Checkpointer& run) -> Result<bool> {
               CAIRN_TRY(run.queue_checkpoint_removal(path));
               return true;
             });
           })
      .def(
          "set_policy",
          [](const PythonCheckpointer& self, std::optional<Nanoseconds> save_interval,
             const Intervals& step_policies) {
            self.call([interval = span_of(save_interval),
                       steps = intervals_of(step_policies)](Checkpointer& run) -> Result<bool> {
              SavePolicy& old = run.policy();
              CAIRN_TRY_ASSIGN(auto policy,
                               SavePolicy::make(interval, steps, old.last_save_time()));
              policy.set_last_save_step(old.last_save_step());
              old = std::move(policy);
              return true;
            });
          },
          nb::kw_only(), nb::arg("save_interval").none(), nb::arg("step_policies"))
      .def("wait_until_finished", &wait_for_run)
      .def("should_stop",
           [](const PythonCheckpointer& self) {
             return self.call([](Checkpointer& run) -> Result<bool> { return run.should_stop(); });
           })
      .def_prop_rw(
          "last_save_step",
          [](const PythonCheckpointer& self) {
            return self.call([](Checkpointer& run) -> Result<std::int64_t> {
              return run.policy().last_save_step();
            });
          },
          [](const PythonCheckpointer& self, std::int64_t step) {
            self.call([step](Checkpointer& run) -> Result<bool> {
              run.policy().set_last_save_step(step);
              return true;
            });
          })
      .def_prop_rw(
          "last_save_time",
          [](const PythonCheckpointer& self) {
            return self.call([](Checkpointer& run) -> Result<Nanoseconds> {
              return time_of(run.policy().last_save_time());
            });
          },
          [](const PythonCheckpointer& self, Nanoseconds time) {
            self.call([time](Checkpointer& run) -> Result<bool> {
              run.policy().set_last_save_time(wall_of(time));
              return true;
            });
          });
}

}  // namespace cairn::python
