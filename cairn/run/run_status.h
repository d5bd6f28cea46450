// SPDX-License-Identifier: Apache-2.0
// A run seen from outside: its owner, its checkpoints, the saves in flight and the progress of each
// of their ranks. Takes no lock and needs read permission only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cairn/commit/seen_attempts.h"
#include "cairn/run/discovery.h"
#include "cairn/run/ownership.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

class Destination;
class RunDirectory;

/// A save in flight, or what is left of one.
struct SaveStatus {
  std::string path;  ///< of the checkpoint that it saves
  SeenAttempt attempt;
  /// Of all its ranks, since the previous look; nothing at the first.
  std::optional<double> bytes_per_second = {};

  /// Sums over the ranks that have reported.
  std::uint64_t done() const;
  std::uint64_t total() const;
  /// Its writer is alive, or it is decided and being moved into place.
  bool in_flight() const;
};

struct RunStatus {
  std::string path;
  Clock::Wall time;  ///< of the look
  std::optional<SeenOwner> owner = {};
  std::optional<RunEntry> latest = {};      ///< that find_latest_checkpoint() would give
  std::uint64_t checkpoints = 0;            ///< with a mark, damaged ones included
  std::vector<SaveStatus> saves = {};       ///< in the run directory and its direct children
  std::uint64_t leftovers = 0;              ///< attempts of the dead, abandoned ones, and trash
  std::optional<std::string> request = {};  ///< the reason of a save that is asked for
  std::optional<std::uint64_t> bytes = {};  ///< of all files in the run directory
  std::optional<std::uint64_t> free_bytes = {};  ///< on its disk, to this user
  std::optional<std::uint64_t> disk_bytes = {};  ///< of the disk
};

/// For repeated looks: what did not change is neither counted nor checked again. Threading:
/// confined. The runtime must outlive it.
class RunWatch {
 public:
  RunWatch(std::string base, Runtime& runtime);

  enum class Bytes : std::uint8_t { kCount, kLeaveOut };
  /// Counting bytes visits every file the first time. Files that cannot be read are left out.
  /// `not_found` if there is no such directory. In the saving process it first waits for that
  /// process's own saves, as list_run() does; use the SaveHandle there.
  Result<RunStatus> look(Bytes bytes = Bytes::kCount);

 private:
  /// What was found out about a directory; good while that is the same.
  struct Known {
    std::string version;
    std::optional<bool> good = {};
    std::optional<std::uint64_t> bytes = {};
  };
  struct Before {
    std::uint64_t done = 0;
    Clock::Mono time = {};
  };

  Known& known(Destination& place);
  bool is_good(const RunEntry& entry);
  void add_saves(Destination& place, RunStatus& status) const;
  void add_rates(RunStatus& status);
  std::optional<std::uint64_t> count_bytes(const RunDirectory& run, const RunStatus& status);

  const std::string base_;
  Runtime& runtime_;
  std::map<std::string, Known> known_;    // by path
  std::map<std::string, Before> before_;  // by attempt
};

/// One look.
Result<RunStatus> look_at_run(const std::string& base, Runtime& runtime);

}  // namespace cairn
