// SPDX-License-Identifier: Apache-2.0
// cairn_policy_probe: one run a line on stdin, what it decided a line on stdout; times are integers
// of microseconds.
//
//   {"interval": time or null, "steps": [[every, until or null], ...], "now": time, "acts": [act,
//   ...]} act := ["step", step, now, force]   -> 0 nothing, 1 temporary, 2 permanent; saves are
//   noted
//        | ["restart", now, step]       a new process that resumed from that step  -> null
//        | ["set", step or null, time or null]                                     -> null
// A policy that is refused is answered with the reason, as text.
#include <iostream>
#include <string>

#include "cairn/base/json.h"
#include "cairn/manager/save_policy.h"

namespace {

using cairn::Clock;
using cairn::Json;
using std::chrono::microseconds;

const Json& at(const Json& json, std::size_t index) { return (*json.array())[index]; }

Clock::Wall time_of(const Json& json) { return Clock::Wall(microseconds(*json.integer())); }

cairn::Result<cairn::SavePolicy> make(const Json& run, Clock::Wall now) {
  std::optional<std::chrono::nanoseconds> interval;
  if (!run.find("interval")->is_null()) interval = microseconds(*run.find("interval")->integer());
  std::vector<cairn::CheckpointInterval> steps;
  for (const Json& step : *run.find("steps")->array())
    steps.push_back({*at(step, 0).integer(), at(step, 1).integer()});
  return cairn::SavePolicy::make(interval, std::move(steps), now);
}

Json act(const Json& what, const Json& run, cairn::SavePolicy& policy) {
  const std::string& verb = *at(what, 0).text();
  if (verb == "restart") {
    policy = *make(run, time_of(at(what, 1)));
    policy.set_last_save_step(*at(what, 2).integer());
    return nullptr;
  }
  if (verb == "set") {
    if (!at(what, 1).is_null()) policy.set_last_save_step(*at(what, 1).integer());
    if (!at(what, 2).is_null()) policy.set_last_save_time(time_of(at(what, 2)));
    return nullptr;
  }
  const std::int64_t step = *at(what, 1).integer();
  const Clock::Wall now = time_of(at(what, 2));
  const auto kind = policy.decide(step, now, *at(what, 3).boolean());
  if (kind != cairn::SaveKind::kNone) policy.saved(step, now);
  return static_cast<int>(kind);
}

cairn::Result<Json> play(const Json& run) {
  CAIRN_TRY_ASSIGN(cairn::SavePolicy policy, make(run, time_of(*run.find("now"))));
  Json::Array answers;
  for (const Json& what : *run.find("acts")->array()) answers.push_back(act(what, run, policy));
  return Json(std::move(answers));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto answer = play(*cairn::parse_json(line));
    std::cout << cairn::dump_json(answer ? *answer : Json(answer.error().reason())) << '\n';
  }
}
