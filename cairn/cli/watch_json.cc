// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/watch_json.h"

#include <algorithm>

#include "cairn/cli/terminal.h"

namespace cairn::cli {

namespace {

Json process_or_null(std::int64_t process) {
  if (process == 0) return {};
  return process;
}

const char* state_name(AttemptState state) {
  constexpr const char* kNames[] = {"alive", "dead", "decided", "abandoned"};
  return kNames[static_cast<std::size_t>(state)];
}

Json to_json(const SeenRank& rank, Clock::Wall now) {
  return Json::Object{{"rank", rank.rank},
                      {"phase", text_or_null(rank.phase)},
                      {"done_bytes", rank.done},
                      {"total_bytes", rank.total},
                      {"phase_seconds", or_null(seconds_since(rank.since, now))},
                      {"unchanged_seconds", or_null(seconds_since(rank.time, now))},
                      {"host", text_or_null(rank.host)},
                      {"process", process_or_null(rank.process)},
                      {"alive", or_null(rank.alive)},
                      {"reported", rank.reported},
                      {"failure", text_or_null(rank.failure)}};
}

Json to_json(const SaveStatus& save, Clock::Wall now) {
  const AttemptView& view = save.attempt.view;
  Json::Array ranks;
  for (const SeenRank& rank : save.attempt.ranks) ranks.push_back(to_json(rank, now));
  return Json::Object{{"path", save.path},
                      {"attempt", view.id},
                      {"state", state_name(view.state)},
                      {"host", text_or_null(view.host)},
                      {"process", process_or_null(view.process)},
                      {"started", text_or_null(view.started)},
                      {"seconds", or_null(seconds_since(view.started, now))},
                      {"prefixes", Json::Array(view.prefixes.begin(), view.prefixes.end())},
                      {"done_bytes", save.done()},
                      {"total_bytes", save.total()},
                      {"bytes_per_second", or_null(save.bytes_per_second)},
                      {"failure", text_or_null(save.attempt.failure)},
                      {"ranks", std::move(ranks)}};
}

Json to_json(const SeenOwner& owner) {
  return Json::Object{{"run_id", owner.file.run_id}, {"epoch", owner.file.epoch},
                      {"host", owner.file.host},     {"process", owner.file.process},
                      {"time", owner.file.time},     {"alive", owner.alive}};
}

Json to_json(const RunEntry& entry) {
  return Json::Object{{"path", entry.path},
                      {"step", or_null(entry.step)},
                      {"time", entry.timestamp},
                      {"is_temporary", entry.is_temporary}};
}

/// Without what moves by itself.
Json still(const SeenRank& rank) {
  return Json::Array{rank.rank,  rank.phase,    rank.done,    rank.total,
                     rank.since, rank.reported, rank.failure, or_null(rank.alive)};
}

}  // namespace

std::optional<double> seconds_since(const std::string& timestamp, Clock::Wall now) {
  const auto time = parse_timestamp(timestamp);
  if (!time) return std::nullopt;
  return std::max(0.0, std::chrono::duration<double>(now - *time).count());
}

Json run_to_json(const RunStatus& status) {
  Json::Array saves;
  for (const SaveStatus& save : status.saves) saves.push_back(to_json(save, status.time));
  return Json::Object{{"path", status.path},
                      {"time", format_timestamp(status.time)},
                      {"owner", status.owner ? to_json(*status.owner) : Json()},
                      {"latest", status.latest ? to_json(*status.latest) : Json()},
                      {"checkpoints", status.checkpoints},
                      {"saves", std::move(saves)},
                      {"leftovers", status.leftovers},
                      {"request", or_null(status.request)},
                      {"bytes", or_null(status.bytes)},
                      {"free_bytes", or_null(status.free_bytes)},
                      {"disk_bytes", or_null(status.disk_bytes)}};
}

std::string state_of(const RunStatus& status) {
  Json::Array state{status.owner ? to_json(*status.owner) : Json(),
                    status.latest ? to_json(*status.latest) : Json(), status.checkpoints,
                    status.leftovers, or_null(status.request)};
  for (const SaveStatus& save : status.saves) {
    const AttemptView& view = save.attempt.view;
    state.emplace_back(Json::Array{save.path, view.id, state_name(view.state)});
    for (const SeenRank& rank : save.attempt.ranks) state.push_back(still(rank));
  }
  return dump_json(state);
}

}  // namespace cairn::cli
