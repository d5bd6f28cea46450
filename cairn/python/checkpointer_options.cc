// SPDX-License-Identifier: Apache-2.0
// How a run's checkpointer is made in Python, and what its policies are then.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
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

using Nanoseconds = std::int64_t;
using Intervals = std::vector<std::pair<std::int64_t, std::optional<std::int64_t>>>;

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

template <typename T>
std::optional<T> attribute(const nb::object& object, const char* name) {
  std::optional<T> value;
  if (nb::try_cast(object.attr(name), value)) return value;
  throw nb::type_error(fmt::format("{} of the retention rules is of the wrong kind", name).c_str());
}

RetentionRules retention_of(const nb::object& rules) {
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

std::vector<CheckpointInterval> intervals_of(const Intervals& pairs) {
  std::vector<CheckpointInterval> intervals;
  for (const auto& [every, until] : pairs) intervals.push_back({every, until});
  return intervals;
}

std::optional<std::chrono::nanoseconds> nanoseconds_of(std::optional<Nanoseconds> span) {
  return span ? std::optional(std::chrono::nanoseconds(*span)) : std::nullopt;
}

}  // namespace

void bind_checkpointer_options(nb::class_<PythonCheckpointer>& bound) {
  bound.def(
      "__init__",
      [](PythonCheckpointer* self, std::string base_path, std::optional<Nanoseconds> save_interval,
         const Intervals& step_policies, std::shared_ptr<PythonManager> manager,
         const nb::object& now, bool delete_old_temp_checkpoints, const nb::object& retention,
         std::string run_id, bool take_over, bool watch_requests, const std::vector<int>& save_on,
         const std::vector<int>& stop_on, Nanoseconds stop_timeout, double agreement_share,
         std::string metrics_path) {
        CheckpointerOptions options{.base_path = std::move(base_path),
                                    .save_interval = nanoseconds_of(save_interval),
                                    .step_policies = intervals_of(step_policies),
                                    .now = clock_of(now),
                                    .delete_old_temp_checkpoints = delete_old_temp_checkpoints,
                                    .retention = retention_of(retention),
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
  bound
      .def(
          "set_policy",
          [](const PythonCheckpointer& self, std::optional<Nanoseconds> save_interval,
             const Intervals& step_policies) {
            self.call([interval = nanoseconds_of(save_interval),
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
