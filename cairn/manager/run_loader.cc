// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/run_loader.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/commit/open.h"
#include "cairn/coord/agreement.h"
#include "cairn/manager/run_places.h"
#include "cairn/run/damage_note.h"
#include "cairn/run/discovery.h"
#include "cairn/run/join_members.h"
#include "cairn/runtime/in_flight.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

/// Members of the mark join those of the user, who wins.
void add_mark(const Json& mark, Json& extras) {
  if (mark.object() == nullptr) return;
  extras =
      join_members(extras.object() != nullptr ? std::move(extras) : Json(Json::Object{}), mark);
}

Error none_good(const std::string& root, const std::string& why) {
  return {Code::kCorrupt, "run/no-good-checkpoint",
          fmt::format("none of the checkpoints in {} can be taken: {}", root, why)};
}

/// The first that ought to be loadable, as it has been committed, and what is wrong with it; empty:
/// there is none.
Result<std::string> describe_bad_one(const std::string& root, Runtime& runtime) {
  const auto entries = list_run(root, runtime);
  if (!entries)
    return entries.error().code() == Code::kNotFound ? Result<std::string>("") : entries.error();
  for (const RunEntry& entry : *entries) {
    if (entry.marked && !entry.torn && (entry.ours || entry.step))
      return fmt::format("{}: {}", entry.path, find_problem(entry, runtime));
  }
  return "";
}

}  // namespace

Result<std::optional<Loaded>> RunLoader::load(const LoadCheckpointOptions& options,
                                              bool with_prefix) {
  const std::string& root = root_of(options);
  if (!options.discover_latest) {
    auto loaded = load_one(root, options.load, with_prefix);
    if (loaded) return std::optional(*std::move(loaded));
    if (leads_into_run(base_, root)) remember(root, loaded.error());
    return std::move(loaded).error();
  }
  std::vector<std::string> passed_over;
  std::optional<std::string> before;
  CAIRN_TRY_ASSIGN(std::string path, latest(root, before));
  for (int again = 0;;) {
    if (path.empty() && passed_over.empty()) return std::optional<Loaded>();
    if (path.empty()) return none_good(root, fmt::format("{}", fmt::join(passed_over, "; ")));
    auto loaded = load_one(path, options.load, with_prefix);
    if (loaded) {
      auto& notes = loaded->report.notes;
      notes.insert(notes.end(), passed_over.begin(), passed_over.end());
      return std::optional(*std::move(loaded));
    }
    // It may have been removed since, because there is a later one.
    CAIRN_TRY_ASSIGN(std::string now, latest(root, before));
    if (now != path && again++ < kMostReopenings) {
      path = std::move(now);
      continue;
    }
    remember(path, loaded.error());
    if (!options.fallback || loaded.error().code() != Code::kCorrupt)
      return std::move(loaded).error();
    passed_over.push_back(fmt::format("{} was passed over: {}", path, loaded.error().to_string()));
    runtime_.log(LogLevel::kWarning, "checkpointer/fallback", passed_over.back());
    before = path;
    CAIRN_TRY_ASSIGN(path, latest(root, before));
  }
}

Result<std::optional<Loaded>> RunLoader::load_pytree(const LoadCheckpointOptions& options) {
  CAIRN_TRY_ASSIGN(auto loaded, find_pytree(options));
  if (loaded && !options.load_treedef && options.load.like == nullptr) {
    CAIRN_TRY_ASSIGN(auto leaves, flatten(loaded->tree));
    CAIRN_TRY_ASSIGN(loaded->tree, nest(std::move(leaves)));
  }
  return loaded;
}

Result<std::optional<Loaded>> RunLoader::find_pytree(const LoadCheckpointOptions& options) {
  CAIRN_TRY_ASSIGN(auto loaded, load(options, options.load_treedef));
  if (loaded) return loaded;
  if (options.discover_raise) return no_checkpoint(options);
  // A tree that was saved without a step lies in the run directory itself.
  LoadCheckpointOptions here = options;
  here.discover_latest = false;
  auto there = load(here, options.load_treedef);
  if (there) return there;
  const std::string_view reason = there.error().reason();
  const bool absent = reason == "checkpoint/not-a-checkpoint" ||
                      (there.error().code() == Code::kNotFound && reason != "load/prefix-missing");
  return absent ? Result<std::optional<Loaded>>(std::optional<Loaded>()) : std::move(there);
}

Result<void> RunLoader::check_for_bad_ones(const LoadCheckpointOptions& options) {
  const std::string& root = root_of(options);
  const auto found =
      runtime_.rank() == 0 ? describe_bad_one(root, runtime_) : Result<std::string>("");
  CAIRN_TRY_ASSIGN(const std::string bad,
                   coord::hear_rank_0(manager_->ranks(), found, "look for damaged checkpoints"));
  if (bad.empty()) return {};
  return none_good(root, bad);
}

Error RunLoader::no_checkpoint(const LoadCheckpointOptions& options) const {
  return {Code::kNotFound, "run/no-checkpoint",
          fmt::format("No checkpoint found under {}", root_of(options))};
}

// Rank 0 looks; "" for none.
Result<std::string> RunLoader::latest(const std::string& root,
                                      const std::optional<std::string>& before) {
  const auto found = [&]() -> Result<std::string> {
    if (runtime_.rank() > 0) return std::string();
    CAIRN_TRY_ASSIGN(const auto path, find_latest_checkpoint(root, runtime_, before));
    return path.value_or("");
  }();
  wait_for_saves(root, runtime_.rank());
  return coord::hear_rank_0(manager_->ranks(), found, "find the latest checkpoint");
}

// Other systems write theirs without a commit: it is what lies there now.
std::optional<std::string> RunLoader::mark_in_place(const std::string& path) const {
  const auto uri = parse_uri(path);
  const auto destination = uri ? open_destination(*uri, runtime_) : uri.error();
  if (!destination) return std::nullopt;
  const auto snapshot = (*destination)->snapshot();
  return snapshot ? snapshot->mark : std::nullopt;
}

// A checkpoint of another run says nothing about this one.
void RunLoader::note_place(const std::string& path, const Mark& mark) {
  if (mark.step && mark.lineage && leads_into_run(base_, path))
    branch_.loaded(*mark.step, *mark.lineage);
}

// What a load has found damaged counts as nothing in the rules of the run.
void RunLoader::remember(const std::string& path, const Error& error) const {
  if (error.code() != Code::kCorrupt || runtime_.rank() != 0) return;
  note_damage(path, error.to_string(), runtime_)
      .ignore_error("who may only read hears of it all the same");
}

Result<Loaded> RunLoader::load_one(const std::string& path, const LoadOptions& options,
                                   bool with_prefix) {
  CAIRN_TRY_ASSIGN(auto loaded, with_prefix ? manager_->load_pytree(path, options)
                                            : manager_->load(path, options));
  if (loaded.record) {
    run_id_ = loaded.record->run_id;
  } else {
    loaded.mark = mark_in_place(path);
  }
  if (!loaded.mark) return loaded;
  if (const auto mark = parse_mark(*loaded.mark)) {
    add_mark(to_json(*mark), loaded.extras);
    note_place(path, *mark);
  }
  return loaded;
}

}  // namespace cairn
