// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/rank_phase.h"

#include "cairn/base/json.h"

namespace cairn {

namespace {

std::string text_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member != nullptr && member->text() != nullptr ? *member->text() : std::string();
}

std::uint64_t number_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member != nullptr ? member->unsigned_integer().value_or(0) : 0;
}

}  // namespace

std::string dump_rank_phase(const RankPhase& phase) {
  return dump_json(Json::Object{{"phase", phase.phase},
                                {"done", phase.done},
                                {"total", phase.total},
                                {"since", phase.since},
                                {"time", phase.time},
                                {"host", phase.writer.host},
                                {"process", phase.writer.process},
                                {"boot_id", phase.writer.boot_id}});
}

Result<RankPhase> parse_rank_phase(std::string_view text) {
  const auto json =
      parse_json(text.substr(0, text.find('\n')), JsonLimits{.bytes = kMaxPhaseBytes});
  RankPhase phase;
  if (json) phase.phase = text_in(*json, "phase");
  if (phase.phase.empty())
    return Error(Code::kCorrupt, "ranks/bad-phase", "the phase of a rank is damaged");
  phase.done = number_in(*json, "done");
  phase.total = number_in(*json, "total");
  phase.since = text_in(*json, "since");
  phase.time = text_in(*json, "time");
  phase.writer.host = text_in(*json, "host");
  const Json* process = json->find("process");
  phase.writer.process = process != nullptr ? process->integer().value_or(0) : 0;
  phase.writer.boot_id = text_in(*json, "boot_id");
  return phase;
}

}  // namespace cairn
