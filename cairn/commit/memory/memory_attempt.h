// SPDX-License-Identifier: Apache-2.0
// The attempts below memory://, as this process knows them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/base/clock.h"
#include "cairn/commit/attempt_rank.h"
#include "cairn/commit/memory/memory_directory.h"
#include "cairn/commit/merge.h"
#include "cairn/commit/seen_attempts.h"
#include "cairn/commit/snapshot.h"

namespace cairn {

/// One attempt, shared by its writer and ranks. Its data is removed with it. Threading: safe.
struct MemoryAttempt {
  MemoryAttempt(std::shared_ptr<MemoryDirectory> where, AttemptView seen, PrefixVersions before,
                int count);
  ~MemoryAttempt();
  MemoryAttempt(const MemoryAttempt&) = delete;
  MemoryAttempt& operator=(const MemoryAttempt&) = delete;

  /// The store of a directory of its own.
  std::unique_ptr<storage::Store> open(const std::string& directory) const;

  const std::shared_ptr<MemoryDirectory> place;
  const AttemptView view;
  const PrefixVersions versions;
  const int ranks;
  const std::string name;  ///< its directory in the place

  struct Rank {
    RankPhase said;
    bool alive = true;
    std::map<std::string, std::string> reports;  ///< by stage
  };
  Mutex mutex;
  std::map<int, Rank> by_rank CAIRN_GUARDED_BY(mutex);
  Ending ending CAIRN_GUARDED_BY(mutex);
  bool leader_lives CAIRN_GUARDED_BY(mutex) = true;
};

/// Those that lie in a place, and what is known of their ranks.
std::vector<SeenAttempt> look_at_attempts(MemoryDirectory& place) CAIRN_REQUIRES(place.mutex);
/// Destination::snapshot().
Result<Snapshot> take_snapshot(MemoryDirectory& place) CAIRN_REQUIRES(place.mutex);

/// This rank's board in an attempt. `clock` must outlive it.
std::unique_ptr<RankBoard> open_memory_board(std::shared_ptr<MemoryAttempt> attempt, int rank,
                                             Clock& clock);

}  // namespace cairn
