// SPDX-License-Identifier: Apache-2.0
// `AttemptRank`: one rank's place in an attempt of several. The ranks meet in its directory and
// nowhere else:
//
//   ranks/<rank>.phase        what the rank is doing (rank_phase.h); it holds a lock on the file
//                             while it lives
//   ranks/<rank>.<stage>.json its report of a stage, whole by rename: what it wrote; its error is
//                             the stage "failed"; of rank 0's stages the others may wait for one
//   pieces/                   what ranks leave for each other
//   outcome.json              the decision of rank 0, or anybody's abandonment; whoever is first
//
// Nobody but rank 0 reads reports; the others look for the outcome. Polling backs off, the more the
// more ranks there are.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/async/deadline.h"
#include "cairn/base/uri.h"
#include "cairn/commit/rank_report.h"
#include "cairn/storage/local/file_system.h"
#include "cairn/storage/store.h"

namespace cairn {

/// Threading: compatible; data(), pieces(), enter() and count() are safe.
class AttemptRank {
 public:
  struct Options {
    LocalPath dest;
    std::string attempt;  ///< its id
    int rank = 0;
    int ranks = 1;
  };

  /// Opens the attempt, which rank 0 made, and enters the phase "begin". `cancelled` (ranks/gone)
  /// if it is not there.
  static Result<std::unique_ptr<AttemptRank>> join(storage::FileSystem& fs, Clock& clock,
                                                   Options options);
  /// What abandon() does, for rank 0 when it could not join.
  static Result<void> abandon_unjoined(storage::FileSystem& fs, Clock& clock, Options options,
                                       const Error& error);
  virtual ~AttemptRank() = default;

  /// Where the data goes: the store of new/.
  virtual storage::Store& data() = 0;
  virtual storage::Store& pieces() = 0;

  /// What this rank does now, for those who wait for it and for people who look: as well as it can
  /// be said, on a full disk perhaps not.
  virtual void enter(std::string_view phase) = 0;
  /// The same of bytes of elements. From any thread.
  virtual void count(std::uint64_t done, std::uint64_t total) = 0;
  /// Everything that the report speaks of is durable before.
  virtual Result<void> report(std::string_view stage, const RankReport& report) = 0;

  /// Rank 0: until all of `from` have reported the stage; `take` gets each report once. Ends early
  /// with the error of a rank that failed or died, with the abandonment of another, or with
  /// `deadline_exceeded` (ranks/late), each naming the ranks and their phases.
  using Take = std::function<Result<void>(RankReport)>;
  virtual Result<void> wait_reports(std::string_view stage, const std::vector<int>& from,
                                    Deadline deadline, const Take& take) = 0;
  /// The others: until rank 0 has reported the stage. Ends early as wait_outcome() does.
  virtual Result<void> wait_leader(std::string_view stage, Deadline deadline) = 0;
  /// Until it is decided: fine if committed, else the error that the save was abandoned with.
  /// `deadline_exceeded` (ranks/late) if rank 0 is silent, `cancelled` (ranks/gone) if the attempt
  /// went away undecided.
  virtual Result<void> wait_outcome(Deadline deadline) = 0;
  /// The save has failed, on every rank, with `error`; unless it is decided already: then that
  /// counts. Returns what wait_outcome() does.
  virtual Result<void> abandon(const Error& error) = 0;
};

}  // namespace cairn
