// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/run_status.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "cairn/base/uri.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/look_at_attempts.h"
#include "cairn/manifest/names.h"
#include "cairn/run/locked_checkpoint.h"
#include "cairn/run/save_request.h"

namespace cairn {

namespace {

/// What goes while it is counted counts nothing.
std::uint64_t bytes_below(const Directory& directory, const std::string& name) {
  const auto entries = directory.list(name);
  if (!entries) return 0;
  std::uint64_t bytes = 0;
  for (const storage::DirEntry& entry : *entries) {
    const std::string below = name + "/" + entry.name;
    if (entry.kind == storage::FileKind::kDirectory) {
      bytes += bytes_below(directory, below);
    } else if (entry.kind == storage::FileKind::kFile) {
      const auto info = directory.stat(below);
      bytes += info ? info->size : 0;
    }
  }
  return bytes;
}

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

RunWatch::Known& RunWatch::known(const std::string& path) {
  const auto info = runtime_.file_system().stat(nullptr, path, true);
  Known& now = known_[path];
  if (!info || info->inode != now.inode || info->modified_ns != now.modified_ns)
    now = info ? Known{info->inode, info->modified_ns} : Known{};
  return now;
}

bool RunWatch::is_good(const RunEntry& entry) {
  if (!entry.problem.empty()) return false;
  std::optional<bool>& good = known(entry.path).good;
  if (!good) good = find_problem(entry, runtime_).empty();
  return *good;
}

void RunWatch::add_saves(const LocalPath& path, RunStatus& status) const {
  auto attempts = look_at_attempts(runtime_.file_system(), path);
  if (!attempts) return;
  bool busy = false;
  for (SeenAttempt& attempt : *attempts) {
    status.saves.push_back({path, std::move(attempt)});
    busy = busy || status.saves.back().in_flight();
  }
  // A save has trash of its own for moments.
  const std::string trash = path.below(kTrashName);
  if (!busy && runtime_.file_system().stat(nullptr, trash, false)) ++status.leftovers;
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

std::optional<std::uint64_t> RunWatch::count_bytes(const RunStatus& status) {
  const auto run = open_run(base_, runtime_);
  const auto entries = run ? run->list() : run.error();
  if (!entries) return std::nullopt;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, Known*>> to_count;
  for (const storage::DirEntry& entry : *entries) {
    if (entry.kind == storage::FileKind::kFile) {
      const auto info = run->stat(entry.name);
      bytes += info ? info->size : 0;
    }
    if (entry.kind != storage::FileKind::kDirectory) continue;
    const std::string path = run->path_of(entry.name);
    Known& found = known(path);
    // Files come and go below these, and nobody notices in the directory itself.
    const bool restless =
        entry.name.starts_with('.') ||
        std::ranges::find(status.saves, path, &SaveStatus::path) != status.saves.end();
    if (restless) found.bytes.reset();
    if (found.bytes)
      bytes += *found.bytes;
    else
      to_count.emplace_back(entry.name, &found);
  }
  std::atomic<std::uint64_t> counted = 0;
  for_each_index(runtime_.executor(), to_count.size(), [&](std::size_t i) -> Result<void> {
    to_count[i].second->bytes = bytes_below(*run, to_count[i].first);
    counted += *to_count[i].second->bytes;
    return {};
  }).ignore_error("there is none");
  return bytes + counted;
}

Result<RunStatus> RunWatch::look(Bytes bytes) {
  CAIRN_TRY_ASSIGN(const Directory run, open_run(base_, runtime_));
  CAIRN_TRY_ASSIGN(const auto children, run.list());
  CAIRN_TRY_ASSIGN(const auto entries, list_run(base_, runtime_));
  RunStatus status;
  status.path = run.path();
  status.time = runtime_.clock().wall();
  status.owner = or_nothing(find_owner(base_, runtime_));
  status.request = or_nothing(find_request(base_, runtime_));
  add_saves(run.local(), status);
  for (const storage::DirEntry& child : children) {
    if (!child.name.starts_with('.') && child.kind != storage::FileKind::kFile)
      add_saves(run.local().below(child.name), status);
  }
  add_rates(status);
  status.leftovers += static_cast<std::uint64_t>(std::ranges::count_if(status.saves, is_left_over));
  for (const RunEntry& entry : entries) {
    if (!entry.marked) continue;
    ++status.checkpoints;
    if (!status.latest && !entry.abandoned && is_good(entry)) status.latest = entry;
  }
  if (const auto space = run.fs().space(*run.handle())) {
    status.free_bytes = space->available;
    status.disk_bytes = space->total;
  }
  if (bytes == Bytes::kCount) status.bytes = count_bytes(status);
  return status;
}

Result<RunStatus> look_at_run(const std::string& base, Runtime& runtime) {
  return RunWatch(base, runtime).look();
}

}  // namespace cairn
