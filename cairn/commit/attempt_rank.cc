// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/attempt_rank.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/commit/rank_files.h"
#include "cairn/coord/told_error.h"

namespace cairn {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostNamedRanks = 8;
/// How often those who should live are looked after.
constexpr milliseconds kLookAfter{500};
/// At most so many of them at once, in turn, to bound the load on the storage.
constexpr std::size_t kMostLookedAfter = 1024;

/// Pauses that grow, up to what a storage bears that all ranks look at.
class Backoff {
 public:
  Backoff(Clock& clock, int ranks) : clock_(clock), longest_(std::clamp<int>(ranks, 100, 2000)) {}
  void pause() {
    clock_.pause(wait_);
    wait_ = std::min<milliseconds>(wait_ * 2, longest_);
  }

 private:
  Clock& clock_;
  const milliseconds longest_;
  milliseconds wait_{1};
};

bool is_failure(std::string_view phase) { return phase.starts_with(kFailedPhase); }

/// Those of `ranks` whose turn it is after `last`, round and round.
std::set<int> next_of(const std::set<int>& ranks, int& last) {
  std::set<int> next;
  for (auto at = ranks.upper_bound(last); next.size() < kMostLookedAfter; ++at) {
    if (at == ranks.end()) at = ranks.begin();
    if (!next.insert(*at).second) break;
    last = *at;
  }
  return next;
}

std::string listed(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamedRanks);
  std::string text = fmt::format(
      "{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

void AttemptRank::enter(std::string_view phase) {
  board_->enter(phase).ignore_error("no reason to give up a save");
}

Result<void> AttemptRank::report(std::string_view stage, const RankReport& report) {
  auto done = [&]() -> Result<void> {
    CAIRN_TRY_ASSIGN(const std::string text, dump_rank_report(report));
    return board_->post(report.failure ? kFailedStage : stage, report.rank, text);
  }();
  // On a full disk there is still room in the file that says the phase.
  if (!done && report.failure) return tell_in_phase(*report.failure);
  return done;
}

Result<void> AttemptRank::wait_reports(std::string_view stage, const std::vector<int>& from,
                                       Deadline deadline, const Take& take) {
  std::set<int> missing(from.begin(), from.end());
  Backoff backoff(clock_, place_.ranks);
  auto look_after = clock_.monotonic() + kLookAfter;
  int last_seen = -1;
  while (true) {
    CAIRN_TRY(collect(stage, missing, take));
    if (missing.empty()) return {};
    CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
    if (decided) return *decided;
    const bool late = deadline.passed(clock_);
    if (late || clock_.monotonic() >= look_after) {
      const auto seen = look_at(late ? missing : next_of(missing, last_seen));
      // A rank may have reported, and gone, while it was looked at.
      CAIRN_TRY(collect(stage, missing, take));
      CAIRN_TRY(complain(seen, missing, late));
      look_after = clock_.monotonic() + kLookAfter;
      if (missing.empty()) return {};
    }
    backoff.pause();
  }
}

Result<void> AttemptRank::wait_leader(std::string_view stage, Deadline deadline) {
  return wait_for_rank_0(deadline, [&] { return board_->has_posted(0, stage); });
}

Result<void> AttemptRank::wait_outcome(Deadline deadline) {
  return wait_for_rank_0(deadline, [] { return false; });
}

template <typename IsEnough>
Result<void> AttemptRank::wait_for_rank_0(Deadline deadline, const IsEnough& is_enough) {
  Backoff backoff(clock_, place_.ranks);
  auto look_after = clock_.monotonic() + kLookAfter;
  while (true) {
    if (is_enough()) return {};
    CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
    if (decided) return *decided ? board_->make_outcome_durable() : *decided;
    if (deadline.passed(clock_)) {
      return abandon(Error(Code::kDeadlineExceeded, "ranks/late",
                           fmt::format("rank 0 did not decide in time; it was last in phase '{}'",
                                       sighting_of(0).phase)));
    }
    if (clock_.monotonic() >= look_after) {
      if (board_->leader_is_dead()) {
        CAIRN_TRY_ASSIGN(const auto just_now, look_for_outcome());
        if (just_now) return *just_now ? board_->make_outcome_durable() : *just_now;
        const std::string phase = sighting_of(0).phase;
        return abandon(is_failure(phase) ? Error(Code::kCancelled, "ranks/failed",
                                                 phase.substr(kFailedPhase.size()))
                                         : Error(Code::kCancelled, "ranks/died",
                                                 fmt::format("rank 0 died in phase '{}'", phase)));
      }
      look_after = clock_.monotonic() + kLookAfter;
    }
    backoff.pause();
  }
}

Result<void> AttemptRank::abandon(const Error& error) {
  const auto done = board_->abandon(error);
  if (done) return as_told(error);
  CAIRN_TRY_ASSIGN(const auto decided, look_for_outcome());
  if (decided) return *decided ? board_->make_outcome_durable() : *decided;
  if (done.error().code() == Code::kResourceExhausted && place_.rank == 0) {
    // Nothing is decided, and nobody but rank 0 could have committed: the data can make room.
    board_->make_room();
    if (board_->abandon(error)) return as_told(error);
  }
  tell_in_phase(error).ignore_error("then the others notice that this rank is gone");
  return as_told(error);
}

Result<void> AttemptRank::tell_in_phase(const Error& error) {
  return board_->enter(std::string(kFailedPhase) + error.to_string());
}

// Nothing while it is undecided, or while the storage does not answer; then how the save ended.
Result<Ending> AttemptRank::look_for_outcome() const {
  auto decided = board_->ending();
  if (!decided && decided.error().code() == Code::kUnavailable) return Ending();
  return decided;
}

// Takes the reports that are there from `missing`.
Result<void> AttemptRank::collect(std::string_view stage, std::set<int>& missing,
                                  const Take& take) const {
  const auto posted = board_->posted();
  if (!posted) {
    // With the attempt gone, its outcome says more.
    const Code code = posted.error().code();
    const bool later = code == Code::kNotFound || code == Code::kUnavailable;
    return later ? Result<void>() : posted.error();
  }
  CAIRN_TRY(look_for_failures(*posted));
  for (const PostedReport& report : *posted) {
    if (report.stage != stage || missing.erase(report.rank) == 0) continue;
    CAIRN_TRY_ASSIGN(auto read, read_report(report.rank, stage));
    CAIRN_TRY(take(std::move(read)));
  }
  return {};
}

Result<void> AttemptRank::look_for_failures(const std::vector<PostedReport>& posted) const {
  for (const PostedReport& report : posted) {
    if (report.stage != kFailedStage) continue;
    CAIRN_TRY_ASSIGN(auto read, read_report(report.rank, kFailedStage));
    if (read.failure) return std::move(*read.failure).in(fmt::format("rank {}", report.rank));
  }
  return {};
}

Result<RankReport> AttemptRank::read_report(int rank, std::string_view stage) const {
  CAIRN_TRY_ASSIGN(const auto text, board_->read(rank, stage));
  if (!text) return board_->gone();
  return parse_rank_report(*text).in([&] { return fmt::format("rank {}", rank); });
}

AttemptRank::Sighting AttemptRank::sighting_of(int rank) const {
  auto seen = board_->look_at(rank);
  if (!seen) return {};
  return {std::move(seen->said.phase), rank != place_.rank && seen->alive == false};
}

std::vector<std::pair<int, AttemptRank::Sighting>> AttemptRank::look_at(
    const std::set<int>& ranks) const {
  std::vector<std::pair<int, Sighting>> seen;
  seen.reserve(ranks.size());
  for (const int rank : ranks) seen.emplace_back(rank, sighting_of(rank));
  return seen;
}

// An error if somebody who is still missing is dead, or if it is late.
Result<void> AttemptRank::complain(const std::vector<std::pair<int, Sighting>>& seen,
                                   const std::set<int>& missing, bool late) {
  std::vector<std::string> dead;
  std::vector<std::string> waited_for;
  for (const auto& [rank, sighting] : seen) {
    if (!missing.contains(rank)) continue;
    if (is_failure(sighting.phase)) {
      return Error(Code::kCancelled, "ranks/failed", sighting.phase)
          .in(fmt::format("rank {}", rank));
    }
    waited_for.push_back(fmt::format("rank {} (phase '{}')", rank, sighting.phase));
    if (sighting.dead) dead.push_back(waited_for.back());
  }
  if (!dead.empty())
    return Error(Code::kCancelled, "ranks/died", fmt::format("died: {}", listed(dead)));
  if (!late || waited_for.empty()) return {};
  return Error(Code::kDeadlineExceeded, "ranks/late",
               fmt::format("did not finish in time: {}", listed(waited_for)));
}

}  // namespace cairn
