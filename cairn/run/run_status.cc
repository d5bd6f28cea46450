// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/run_status.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cairn/commit/open.h"
#include "cairn/manifest/names.h"
#include "cairn/run/bytes_below.h"
#include "cairn/run/save_request.h"

namespace cairn {

namespace {

using Child = Destination::Child;

template <typename T>
std::optional<T> or_nothing(Result<std::optional<T>> result) {
  return result ? *std::move(result) : std::nullopt;
}

bool is_left_over(const SaveStatus& save) { return !save.in_flight(); }

}  // namespace

std::uint64_t SaveStatus::done() const {
  std::uint64_t sum = 0;
  for (const SeenRank& rank : attempt.ranks) sum += rank.done;
  return sum;
}

std::uint64_t SaveStatus::total() const {
  std::uint64_t sum = 0;
  for (const SeenRank& rank : attempt.ranks) sum += rank.total;
  return sum;
}

bool SaveStatus::in_flight() const {
  const AttemptState state = attempt.view.state;
  return state == AttemptState::kAlive || state == AttemptState::kDecided;
}

RunWatch::RunWatch(std::string base, Runtime& runtime)
    : base_(std::move(base)), runtime_(runtime) {}

RunWatch::Known& RunWatch::known(Destination& place) {
  const auto version = place.version_of("");
  Known& now = known_[place.path()];
  if (!version || *version != now.version) now = Known{version ? *version : ""};
  return now;
}

bool RunWatch::is_good(const RunEntry& entry) {
  if (!entry.problem.empty()) return false;
  const auto place = open_destination(entry.path, runtime_);
  if (!place) return false;
  std::optional<bool>& good = known(**place).good;
  if (!good) good = find_problem(entry, runtime_).empty();
  return *good;
}

void RunWatch::add_saves(Destination& place, RunStatus& status) const {
  auto attempts = place.look();
  if (!attempts) return;
  bool busy = false;
  for (SeenAttempt& attempt : *attempts) {
    status.saves.push_back({place.path(), std::move(attempt)});
    busy = busy || status.saves.back().in_flight();
  }
  // A save has trash of its own for moments.
  if (!busy && place.stat(std::string(kTrashName))) ++status.leftovers;
}

void RunWatch::add_rates(RunStatus& status) {
  std::map<std::string, Before> now;
  for (SaveStatus& save : status.saves) {
    const Before mine{save.done(), runtime_.clock().monotonic()};
    const std::string& id = save.attempt.view.id;
    if (const auto found = before_.find(id); found != before_.end()) {
      const std::chrono::duration<double> passed = mine.time - found->second.time;
      const std::uint64_t more = mine.done - std::min(mine.done, found->second.done);
      if (passed.count() > 0) save.bytes_per_second = static_cast<double>(more) / passed.count();
    }
    now.emplace(id, mine);
  }
  before_ = std::move(now);
}

std::optional<std::uint64_t> RunWatch::count_bytes(const RunDirectory& run,
                                                   const RunStatus& status) {
  const auto self = run.checkpoint("");
  const auto children = self->list("");
  if (!children) return std::nullopt;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::unique_ptr<Destination>, Known*>> to_count;
  for (const Child& child : *children) {
    if (child.kind == Child::Kind::kFile) {
      const auto info = self->stat(child.name);
      bytes += info ? info->size : 0;
    }
    if (child.kind != Child::Kind::kDirectory) continue;
    auto place = run.checkpoint(child.name);
    Known& found = known(*place);
    // Files come and go below these, and nobody notices in the directory itself.
    const bool restless =
        child.name.starts_with('.') ||
        std::ranges::find(status.saves, place->path(), &SaveStatus::path) != status.saves.end();
    if (restless) found.bytes.reset();
    if (found.bytes)
      bytes += *found.bytes;
    else
      to_count.emplace_back(std::move(place), &found);
  }
  std::atomic<std::uint64_t> counted = 0;
  for_each_index(runtime_.executor(), to_count.size(), [&](std::size_t i) -> Result<void> {
    to_count[i].second->bytes = bytes_below(*to_count[i].first, "");
    counted += *to_count[i].second->bytes;
    return {};
  }).ignore_error("there is none");
  return bytes + counted;
}

Result<RunStatus> RunWatch::look(Bytes bytes) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base_, runtime_));
  const auto self = run->checkpoint("");
  CAIRN_TRY_ASSIGN(const auto children, self->list(""));
  CAIRN_TRY_ASSIGN(const auto entries, list_run(base_, runtime_));
  RunStatus status;
  status.path = run->path();
  status.time = runtime_.clock().wall();
  status.owner = or_nothing(run->find_owner());
  status.request = or_nothing(find_request(base_, runtime_));
  add_saves(*self, status);
  for (const Child& child : children) {
    if (!child.name.starts_with('.') && child.kind != Child::Kind::kFile)
      add_saves(*run->checkpoint(child.name), status);
  }
  add_rates(status);
  status.leftovers += static_cast<std::uint64_t>(std::ranges::count_if(status.saves, is_left_over));
  for (const RunEntry& entry : entries) {
    if (!entry.marked) continue;
    ++status.checkpoints;
    if (!status.latest && !entry.abandoned && is_good(entry)) status.latest = entry;
  }
  if (const auto space = or_nothing(run->space())) {
    status.free_bytes = space->available;
    status.disk_bytes = space->total;
  }
  if (bytes == Bytes::kCount) status.bytes = count_bytes(*run, status);
  return status;
}

Result<RunStatus> look_at_run(const std::string& base, Runtime& runtime) {
  return RunWatch(base, runtime).look();
}

}  // namespace cairn
