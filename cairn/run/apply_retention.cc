// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/apply_retention.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/commit/open.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/run/bytes_below.h"
#include "cairn/run/removal.h"

namespace cairn {

namespace {

std::optional<std::uint64_t> listed_bytes(const std::string& path, Runtime& runtime) {
  const auto opened = open_checkpoint(path, runtime);
  if (!opened || !opened->record) return std::nullopt;
  std::uint64_t bytes = 0;
  for (const RecordPrefix& prefix : opened->record->prefixes) bytes += prefix.manifest_bytes;
  for (const OpenedPrefix& prefix : opened->prefixes) {
    if (prefix.foreign) return std::nullopt;
    for (const ManifestArray& array : prefix.manifest.arrays) {
      for (const std::uint64_t length : array.sums.lengths()) bytes += length;
    }
  }
  return bytes;
}

std::uint64_t bytes_of(const RunEntry& run, Runtime& runtime) {
  if (run.ours) {
    if (const auto bytes = listed_bytes(run.path, runtime)) return *bytes;
  }
  const auto place = open_destination(run.path, runtime);
  return place ? bytes_below(**place, "") : 0;
}

Result<std::uint64_t> free_bytes(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  CAIRN_TRY_ASSIGN(const auto space, run->space());
  if (space) return space->available;
  return Error(Code::kUnimplemented, "retention/space-unknown",
               fmt::format("min_free_bytes: nobody knows how much is free at {}; use max_bytes",
                           run->path()));
}

void remove(const std::string& base, const CommitGuard& guard, Runtime& runtime, Verdict& verdict) {
  const RemovalOptions options{.only_if_temporary = std::string_view(verdict.rule) == "temporary",
                               .guard = guard};
  const auto removed = remove_checkpoint(base, verdict.entry.run.path, options, runtime);
  if (removed && *removed != Removal::kNotTemporary) return;
  verdict.keep = true;
  verdict.rule = "not-removed";
  verdict.reason = removed ? "it is not temporary any more" : removed.error().to_string();
}

}  // namespace

Result<std::vector<RetentionEntry>> survey_run(const std::string& base, bool sizes,
                                               Runtime& runtime) {
  CAIRN_TRY_ASSIGN(auto runs, list_run(base, runtime));
  CAIRN_TRY_ASSIGN(const auto directory, open_run(base, runtime));
  std::vector<RetentionEntry> entries;
  bool latest_found = false;
  for (RunEntry& run : runs) {
    if (run.marked && !latest_found) {
      run.problem = find_problem(run, runtime);
      latest_found = run.problem.empty() && run.damage.empty() && run.is_of_run();
    }
    RetentionEntry entry;
    entry.fixed = !directory->name_of(run.path) || run.link;
    if (sizes) entry.bytes = bytes_of(run, runtime);
    entry.run = std::move(run);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<Verdict>> apply_retention(const std::string& base,
                                             const RetentionOptions& options, Runtime& runtime) {
  const RetentionRules& rules = options.rules;
  CAIRN_TRY(check_rules(rules));
  const bool room = rules.max_bytes || rules.min_free_bytes;
  CAIRN_TRY_ASSIGN(auto entries, survey_run(base, room || options.sizes, runtime));
  for (RetentionEntry& entry : entries) entry.saved = entry.run.path == options.saved;
  std::uint64_t available = 0;
  if (rules.min_free_bytes) {
    // What is only waiting to be deleted takes up space that need not be made.
    if (!options.dry_run) CAIRN_TRY(empty_trash(base, runtime));
    CAIRN_TRY_ASSIGN(available, free_bytes(base, runtime));
  }
  auto verdicts = plan_retention(entries, rules, available);
  if (options.dry_run) return verdicts;
  for (Verdict& verdict : verdicts) {
    if (!verdict.keep) remove(base, options.guard, runtime, verdict);
  }
  return verdicts;
}

}  // namespace cairn
