// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/discovery.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/base/json.h"
#include "cairn/commit/open.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/manifest/names.h"
#include "cairn/run/damage_note.h"
#include "cairn/run/mark.h"
#include "cairn/run/ownership.h"
#include "cairn/runtime/in_flight.h"

namespace cairn {

namespace {

void read_mark(const std::string& text, RunEntry& entry) {
  auto mark = parse_mark(text);
  if (!mark) {
    entry.problem = mark.error().message();
    return;
  }
  if (mark->step) entry.step = mark->step;
  if (!entry.step) entry.problem = "metadata.json has no step";
  if (const auto time = parse_timestamp(mark->timestamp)) entry.time = *time;
  entry.timestamp = std::move(mark->timestamp);
  entry.is_temporary = mark->is_temporary;
  entry.lineage = std::move(mark->lineage);
  entry.extra = std::move(mark->extra);
}

/// What cannot be looked at closer still has its place in the run, where it is passed over aloud.
void take_place_by_mark(Destination& place, RunEntry& entry) {
  const auto text = place.read(std::string(kMarkName), kMaxMarkBytes);
  entry.marked = text && *text;
  if (entry.marked) read_mark(**text, entry);
}

/// Nothing if the directory is no checkpoint at all.
std::optional<RunEntry> look_at(Destination& place) {
  RunEntry entry;
  entry.path = place.path();
  entry.name = entry.path.substr(entry.path.rfind('/') + 1);
  const auto snapshot = place.snapshot();
  if (!snapshot) {
    if (snapshot.error().code() == Code::kNotFound) return std::nullopt;
    take_place_by_mark(place, entry);
    entry.problem = snapshot.error().to_string();
    return entry;
  }
  // A removal leaves a record without prefixes where others' files stay.
  const bool recorded = snapshot->record && !snapshot->record->prefixes.empty();
  const bool nothing = !recorded && !snapshot->mark && snapshot->attempts.empty();
  if (nothing && !place.stat(std::string(kIndexName))) return std::nullopt;
  entry.torn = snapshot->torn;
  entry.busy = std::ranges::any_of(snapshot->attempts, [](const AttemptView& attempt) {
    return attempt.state == AttemptState::kAlive;
  });
  entry.pinned = static_cast<bool>(place.stat(std::string(kPinName)));
  if (recorded) {
    entry.ours = true;
    entry.step = snapshot->record->step;
    entry.run_id = snapshot->record->run_id;
  }
  if (snapshot->mark) {
    entry.marked = true;
    read_mark(*snapshot->mark, entry);
  }
  entry.damage = find_damage(place, *snapshot);
  if (entry.torn) entry.problem = "an unfinished save lies in it";
  if (!snapshot->attempts.empty() && !snapshot->record && !snapshot->mark)
    entry.problem = "only an unfinished save lies in it";
  return entry;
}

/// A run that began again in an old directory is behind what the old one left.
void warn_of_other_run(const std::string& base, const RunEntry& latest, Runtime& runtime) {
  const auto owner = find_owner(base, runtime);
  if (!owner || !*owner || latest.run_id.empty()) return;
  const std::string& run_id = (*owner)->file.run_id;
  if (latest.run_id == run_id) return;
  runtime.log(LogLevel::kWarning, "discovery/other-run",
              fmt::format("{} is the latest, but run {} saved it, and the last job here "
                          "was run {}: is that the one to resume?",
                          latest.path, latest.run_id, run_id));
}

struct Listing {
  std::vector<RunEntry> entries;
  bool some_went = false;  ///< while it was made: what came instead of them may not be in it
};

Result<Listing> list_once(const RunDirectory& run) {
  Listing listing;
  const auto self = run.checkpoint("");
  CAIRN_TRY_ASSIGN(const auto children, self->list(""));
  if (auto entry = look_at(*self)) listing.entries.push_back(*std::move(entry));
  for (const Destination::Child& child : children) {
    if (child.name.starts_with('.') || child.kind == Destination::Child::Kind::kFile) continue;
    const auto place = run.checkpoint(child.name);
    if (auto entry = look_at(*place)) {
      entry->link = child.kind == Destination::Child::Kind::kLink;
      listing.entries.push_back(*std::move(entry));
    } else if (!place->version_of("")) {
      listing.some_went = true;
    }
  }
  return listing;
}

/// When the run saved last at a step below another's: by step, in n log n.
class LastSaves {
 public:
  explicit LastSaves(const std::vector<RunEntry>& entries) {
    for (const RunEntry& entry : entries) {
      if (entry.place() != nullptr && entry.marked && !entry.torn && entry.step && entry.time)
        last_.emplace_back(*entry.step, *entry.time);
    }
    std::ranges::sort(last_);
    for (std::size_t i = 1; i < last_.size(); ++i)
      last_[i].second = std::max(last_[i].second, last_[i - 1].second);
  }

  /// Has the run saved at a lower step since then?
  bool went_back_behind(std::int64_t step, Clock::Wall time) const {
    const auto from = std::ranges::lower_bound(last_, step, {}, &Save::first);
    return from != last_.begin() && std::prev(from)->second > time;
  }

 private:
  using Save = std::pair<std::int64_t, Clock::Wall>;
  std::vector<Save> last_;  // by step; with the latest instant up to there
};

void find_abandoned(std::vector<RunEntry>& entries) {
  const Lineage* const latest = latest_branch(entries);
  if (latest == nullptr) return;
  const LastSaves saves(entries);
  for (RunEntry& entry : entries) {
    if (const Lineage* place = entry.place()) {
      entry.abandoned = !latest->includes(place->number);
    } else {
      entry.abandoned =
          entry.step && entry.time && saves.went_back_behind(*entry.step, *entry.time);
    }
  }
}

bool newer(const RunEntry& a, const RunEntry& b) {
  const auto rank = [](const RunEntry& entry) {
    return std::tuple(!entry.abandoned, entry.step.value_or(-1),
                      entry.place() != nullptr ? entry.place()->number : 0,
                      entry.time.value_or(Clock::Wall::min()), entry.name);
  };
  return rank(a) > rank(b);
}

}  // namespace

Result<std::vector<RunEntry>> list_run(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  wait_for_saves(base, runtime.rank());
  for (int again = 0;; ++again) {
    CAIRN_TRY_ASSIGN(Listing listing, list_once(*run));
    if (listing.some_went && again < kMostReopenings) continue;
    find_abandoned(listing.entries);
    std::ranges::sort(listing.entries, newer);
    return std::move(listing.entries);
  }
}

const Lineage* latest_branch(const std::vector<RunEntry>& entries) {
  const Lineage* latest = nullptr;
  for (const RunEntry& entry : entries) {
    const Lineage* place = entry.place();
    if (place == nullptr || !entry.marked || entry.torn) continue;
    if (latest == nullptr || place->number > latest->number) latest = place;
  }
  return latest;
}

std::string find_problem(const RunEntry& entry, Runtime& runtime) {
  if (!entry.problem.empty()) return entry.problem;
  const auto opened = open_checkpoint(entry.path, runtime);
  if (!opened) return opened.error().message();
  const auto whole = read_settled(*opened, runtime, [&](const Checkpoint& checkpoint) {
    return check_files(checkpoint, runtime);
  });
  return whole ? "" : whole.error().message();
}

Result<void> check_files(const Checkpoint& checkpoint, Runtime& runtime) {
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    const auto& arrays = prefix.manifest.arrays;
    CAIRN_TRY(for_each_index(runtime.executor(), arrays.size(), [&](std::size_t i) -> Result<void> {
      const format::StoredArray& stored = arrays[i].stored;
      const std::uint64_t objects = stored.one_object
                                        ? std::min<std::uint64_t>(1, stored.chunk_count())
                                        : stored.chunk_count();
      for (std::uint64_t n = 0; n < objects; ++n) {
        const std::string key = stored.chunk_key(n);
        const auto info = prefix.store->stat(key);
        if (info) continue;
        if (info.error().code() != Code::kNotFound) return info.error();
        return Error(Code::kCorrupt, "discovery/missing-files",
                     fmt::format("leaf {}: {} is missing", arrays[i].path.text(),
                                 prefix.store->describe(key)));
      }
      return {};
    }));
  }
  return {};
}

namespace {

struct Found {
  std::optional<std::string> path;
  bool outdated = false;  ///< one that was listed was removed before it could be taken
};

/// A person who expects the highest step hears why it is another.
void say_abandoned(const std::vector<RunEntry>& entries, const RunEntry& taken, Runtime& runtime) {
  const auto later = std::ranges::find_if(entries, [&](const RunEntry& entry) {
    return entry.marked && entry.abandoned && entry.step > taken.step;
  });
  if (later == entries.end()) return;
  runtime.log(LogLevel::kWarning, "discovery/abandoned",
              fmt::format("{} is the latest; {} has a higher step, but the run went back behind it "
                          "and saved again. Load it by its path to go on from there",
                          taken.path, later->path));
}

/// A job that starts from nothing beside checkpoints hears why it does not resume from them.
void say_unmarked(const std::vector<RunEntry>& entries, const std::string& base, Runtime& runtime) {
  std::vector<std::string> names;
  for (const RunEntry& entry : entries) {
    if (!entry.marked && !entry.torn) names.push_back(entry.name);
  }
  if (names.empty()) return;
  runtime.log(LogLevel::kWarning, "discovery/unmarked",
              fmt::format("{} has no checkpoint to resume from, but others that were saved without "
                          "a step: {}. Load one by its path, or save with a step",
                          base, format_names(names)));
}

Found find_in(const std::vector<RunEntry>& entries, const std::string& base,
              const std::optional<std::string>& older_than, Runtime& runtime) {
  auto from = entries.begin();
  if (older_than) {
    from = std::ranges::find(entries, *older_than, &RunEntry::path);
    if (from != entries.end()) ++from;
  }
  for (const RunEntry& entry : std::ranges::subrange(from, entries.end())) {
    if (!entry.marked || entry.abandoned) continue;
    const std::string problem = find_problem(entry, runtime);
    if (problem.empty()) {
      warn_of_other_run(base, entry, runtime);
      say_abandoned(entries, entry, runtime);
      return Found{.path = entry.path};
    }
    const auto place = open_destination(entry.path, runtime);
    const auto now = place ? look_at(**place) : std::nullopt;
    if (!now || !now->marked) return Found{.path = {}, .outdated = true};
    runtime.log(LogLevel::kWarning, "discovery/skipped",
                fmt::format("{} was skipped: {}", entry.path, problem));
  }
  return Found{};
}

}  // namespace

Result<std::optional<std::string>> find_latest_checkpoint(
    const std::string& base, Runtime& runtime, const std::optional<std::string>& older_than) {
  for (int again = 0;; ++again) {
    auto entries = list_run(base, runtime);
    if (!entries) {
      if (entries.error().code() == Code::kNotFound) return std::optional<std::string>();
      return std::move(entries).error();
    }
    Found found = find_in(*entries, base, older_than, runtime);
    if (found.outdated && again < kMostReopenings) continue;
    if (!found.path && !older_than) say_unmarked(*entries, base, runtime);
    return std::move(found.path);
  }
}

}  // namespace cairn
