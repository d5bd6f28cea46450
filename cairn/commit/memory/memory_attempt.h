// SPDX-License-Identifier: Apache-2.0
// The attempts below memory://, as this process knows them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/async/mutex.h"
#include "cairn/base/clock.h"
#include "cairn/base/uri.h"
#include "cairn/commit/attempt_rank.h"
#include "cairn/commit/merge.h"
#include "cairn/commit/seen_attempts.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn {

/// A directory of keys: what saves of it share. Threading: safe.
struct MemoryPlace;

/// One attempt, shared by its writer and ranks. Its data is removed with it. Threading: safe.
struct MemoryAttempt {
  MemoryAttempt(std::shared_ptr<MemoryPlace> where, AttemptView seen, PrefixVersions before,
                int count);
  ~MemoryAttempt();
  MemoryAttempt(const MemoryAttempt&) = delete;
  MemoryAttempt& operator=(const MemoryAttempt&) = delete;

  /// The store of a directory of its own.
  std::unique_ptr<storage::Store> open(const std::string& directory) const;

  const std::shared_ptr<MemoryPlace> place;
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

struct MemoryPlace {
  std::string path;  ///< as its URI
  std::string bucket;
  std::string directory;
  Mutex mutex;  ///< held while something becomes visible, and while a reader takes its snapshot
  std::map<std::string, std::weak_ptr<MemoryAttempt>> attempts CAIRN_GUARDED_BY(mutex);

  std::unique_ptr<storage::MemoryStore> open(const std::string& below = "") const;
};

/// The one of this process for a place.
std::shared_ptr<MemoryPlace> memory_place(const Uri& uri);

/// The attempt's ranks and what is known of them.
SeenAttempt look_at(MemoryAttempt& attempt);

/// This rank's board in an attempt. `clock` must outlive it.
std::unique_ptr<RankBoard> open_memory_board(std::shared_ptr<MemoryAttempt> attempt, int rank,
                                             Clock& clock);

}  // namespace cairn
