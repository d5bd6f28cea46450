// SPDX-License-Identifier: Apache-2.0
// `AttemptRank`: one rank's place in an attempt of several. The ranks meet on the storage and
// nowhere else (rank_board.h):
//
//   phase    what the rank is doing; it also shows whether the rank's process lives
//   report   what the rank wrote in one stage; an error is reported as the stage "failed". Ranks
//            may wait for a report of rank 0
//   pieces   data that one rank leaves for another
//   outcome  rank 0's commit, or the abandonment by any rank; the first one counts
//
// Only rank 0 reads reports; the others look for the outcome. Polling backs off; the longest pause
// grows with the number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/async/deadline.h"
#include "cairn/commit/rank_board.h"
#include "cairn/commit/rank_report.h"

namespace cairn {

struct RankOfAttempt {
  std::string attempt;  ///< its id
  int rank = 0;
  int ranks = 1;
};

/// Threading: compatible; data(), pieces(), enter() and count() are safe.
class AttemptRank {
 public:
  /// `clock` must outlive it.
  AttemptRank(std::unique_ptr<RankBoard> board, Clock& clock, RankOfAttempt place)
      : board_(std::move(board)), clock_(clock), place_(std::move(place)) {}

  storage::Store& data() { return board_->data(); }
  storage::Store& pieces() { return board_->pieces(); }

  /// What this rank does now, for those who wait for it and for people who look. Best effort: a
  /// full disk may not take it.
  void enter(std::string_view phase);
  /// How many bytes of elements it has written. From any thread.
  void count(std::uint64_t done, std::uint64_t total) { board_->count(done, total); }
  /// REQUIRES: everything that the report speaks of is durable.
  Result<void> report(std::string_view stage, const RankReport& report);

  /// Rank 0: until all of `from` have reported the stage; `take` gets each report once. Ends early
  /// with the error of a rank that failed or died, with the abandonment of another, or with
  /// `deadline_exceeded` (ranks/late), each naming the ranks and their phases.
  using Take = std::function<Result<void>(RankReport)>;
  Result<void> wait_reports(std::string_view stage, const std::vector<int>& from, Deadline deadline,
                            const Take& take);
  /// The others: until rank 0 has reported the stage. Ends early as wait_outcome() does.
  Result<void> wait_leader(std::string_view stage, Deadline deadline);
  /// Until it is decided: fine if committed, else the error that the save was abandoned with.
  /// `deadline_exceeded` (ranks/late) if rank 0 is silent, `cancelled` (ranks/gone) if the attempt
  /// went away undecided.
  Result<void> wait_outcome(Deadline deadline);
  /// The save has failed, on every rank, with `error`; unless it is decided already: then that
  /// counts. Returns what wait_outcome() does.
  Result<void> abandon(const Error& error);

 private:
  /// What a rank last said that it does, and whether it is known to be dead.
  struct Sighting {
    std::string phase = "not begun";
    bool dead = false;
  };

  template <typename IsEnough>
  Result<void> wait_for_rank_0(Deadline deadline, const IsEnough& is_enough);
  Result<void> tell_in_phase(const Error& error);
  Result<Ending> look_for_outcome() const;
  Result<void> collect(std::string_view stage, std::set<int>& missing, const Take& take) const;
  Result<void> look_for_failures(const std::vector<PostedReport>& posted) const;
  Result<RankReport> read_report(int rank, std::string_view stage) const;
  Sighting sighting_of(int rank) const;
  std::vector<std::pair<int, Sighting>> look_at(const std::set<int>& ranks) const;
  static Result<void> complain(const std::vector<std::pair<int, Sighting>>& seen,
                               const std::set<int>& missing, bool late);

  const std::unique_ptr<RankBoard> board_;
  Clock& clock_;
  const RankOfAttempt place_;
};

}  // namespace cairn
