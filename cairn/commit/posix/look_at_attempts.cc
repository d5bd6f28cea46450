// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/look_at_attempts.h"

#include <map>
#include <utility>

#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/phase_file.h"
#include "cairn/commit/rank_files.h"
#include "cairn/commit/rank_report.h"

namespace cairn {

namespace {

constexpr int kMostExpected = 65'536;
/// Longer than any error; a report of what was written is not read at all.
constexpr std::uint64_t kMaxFailureBytes = kMiB;

std::string read_failure(const Directory& dest, const std::string& file) {
  const auto text = dest.read(file, kMaxFailureBytes);
  const auto report = text && *text ? parse_rank_report(**text) : RankReport();
  return report && report->failure ? report->failure->to_string() : "its error cannot be read";
}

void add_phase(const Directory& dest, const std::string& file, SeenRank& rank) {
  auto seen = look_at_phase(dest, file);
  if (!seen) return;
  RankPhase& said = seen->said;
  if (rank.failure.empty() && said.phase.starts_with(kFailedPhase))
    rank.failure = said.phase.substr(kFailedPhase.size());
  rank.phase = std::move(said.phase);
  rank.done = said.done;
  rank.total = said.total;
  rank.since = std::move(said.since);
  rank.time = std::move(said.time);
  rank.host = std::move(said.writer.host);
  rank.process = said.writer.process;
  rank.alive = seen->alive;
}

std::vector<SeenRank> look_at_ranks(const Directory& dest, const std::string& attempt, int ranks) {
  std::map<int, SeenRank> found;
  for (int rank = 0; rank < ranks && ranks <= kMostExpected; ++rank) found[rank];
  const std::string below = attempt + "/";
  const auto entries = dest.list(below + std::string(kRanksDirectory));
  for (const auto& entry : entries ? *entries : std::vector<storage::DirEntry>()) {
    if (const auto came = rank_in(entry.name, kPhaseEnding))
      add_phase(dest, below + phase_file(*came), found[*came]);
    if (const auto failed = rank_in(entry.name, report_ending(kFailedStage)))
      found[*failed].failure = read_failure(dest, below + report_file(*failed, kFailedStage));
    if (const auto told = rank_in(entry.name, report_ending(kWrittenStage)))
      found[*told].reported = true;
  }
  std::vector<SeenRank> all;
  for (auto& [number, rank] : found) {
    rank.rank = number;
    all.push_back(std::move(rank));
  }
  return all;
}

// Those of a commit are not errors, and what cannot be read says nothing.
std::string read_abandonment(const Directory& dest, const FoundAttempt& attempt) {
  if (attempt.view.state != AttemptState::kAbandoned) return "";
  const auto text =
      dest.read(attempt.directory + "/" + std::string(kOutcomeFile), kMaxAttemptFileBytes);
  if (!text || !*text) return "";
  const auto outcome = parse_outcome(**text);
  return outcome && outcome->failure ? outcome->failure->to_string() : "";
}

}  // namespace

Result<std::vector<SeenAttempt>> look_at_attempts(storage::FileSystem& fs, const LocalPath& path) {
  CAIRN_TRY_ASSIGN(const Directory dest, Directory::open(fs, path, false));
  CAIRN_TRY_ASSIGN(const auto found, find_attempts(dest));
  std::vector<SeenAttempt> attempts;
  attempts.reserve(found.size());
  for (const FoundAttempt& attempt : found) {
    attempts.push_back({attempt.view, look_at_ranks(dest, attempt.directory, attempt.file.ranks),
                        read_abandonment(dest, attempt)});
  }
  return attempts;
}

}  // namespace cairn
