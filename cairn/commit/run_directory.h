// SPDX-License-Identifier: Apache-2.0
// `RunDirectory`: the checkpoints of one run, side by side, and what happens to several of them:
// who owns the run, how a checkpoint goes away, what is left of saves. One implementation for each
// kind of storage, as of Destination; all pass the suite in run/run_directory_test.cc. What is to
// be removed, and why, is decided in the room `run`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/commit/commit_guard.h"
#include "cairn/commit/destination.h"
#include "cairn/commit/run_owner.h"

namespace cairn {

/// What a removal takes of a checkpoint.
struct RemovalPlan {
  enum class Takes : std::uint8_t {
    kNothing,
    kOurs,  ///< the entries of its record and `beside`; the rest stays, and so does the directory
    kAll,   ///< whatever lies in it
  };
  Takes takes = Takes::kNothing;
  std::vector<std::string> beside = {};  ///< files that are ours beside the entries
};

struct RemovalTerms {
  CommitGuard guard = {};
  /// It is known to be of the run; otherwise what no save of ours was in is refused
  /// (removal/foreign) before anything is written there.
  bool known = false;
  /// Asked when nobody else can commit there any more.
  std::function<Result<RemovalPlan>(Destination& dest, const Snapshot& now)> decide;
};

/// What is left in one directory of saves and removals.
struct Debris {
  std::string name;                        ///< of the child; empty: the run directory itself
  std::vector<std::string> attempts = {};  ///< of writers that died or gave up: paths
  std::string trash = {};                  ///< path of what waits to be deleted; empty: nothing
  bool decided = false;  ///< a save has happened whose writer did not put all of it in its place
};

/// Threading: compatible.
class RunDirectory {
 public:
  struct Space {
    std::uint64_t available = 0;  ///< to this user
    std::uint64_t total = 0;
  };

  virtual ~RunDirectory() = default;

  /// As users write it: a path, or a URL.
  virtual const std::string& path() const = 0;
  /// The child of this name; "": the run directory itself, which may be a checkpoint too.
  virtual std::unique_ptr<Destination> checkpoint(const std::string& name) const = 0;
  /// The name of the direct child that `path` leads to. `invalid_argument` (removal/outside).
  virtual Result<std::string> name_of(const std::string& path) const = 0;
  /// Nothing where no limit is known.
  virtual Result<std::optional<Space>> space() const = 0;

  /// Makes the directory if it is not there. Within one process everybody who takes a run gets the
  /// same owner, with the run id of the first; unless that one was taken over, and this is to take
  /// the run back. `failed_precondition` (run/owned) with host, process and time of an owner that
  /// lives; `deadline_exceeded` (commit/lock-timeout), `failed_precondition`
  /// (commit/locks-unsupported).
  virtual Result<std::shared_ptr<RunOwner>> take(const OwnershipOptions& options) = 0;
  /// Nothing if nobody ever owned it. Takes no lock.
  virtual Result<std::optional<SeenOwner>> find_owner() const = 0;

  /// Removes a child as `terms.decide` says, whole or not at all for every reader, and durably;
  /// what it takes may wait in the trash. What it took; nothing: there is no such child.
  /// `failed_precondition` (removal/symlink, removal/foreign), the errors of guard and decide. An
  /// error means that it can still be found, or that it is gone.
  virtual Result<std::optional<RemovalPlan::Takes>> remove(const std::string& name,
                                                           const RemovalTerms& terms) = 0;
  /// Deletes what removals left, and says how many there were. Removals need not wait for it.
  virtual Result<std::uint64_t> empty_trash() = 0;

  /// Of the run directory and its direct children.
  virtual Result<std::vector<Debris>> find_debris() const = 0;
  /// Removes it, finishes what was decided, and makes the mark of a torn checkpoint
  /// `metadata.json.torn`; a directory in which nothing else lies goes too. The trash of the run
  /// directory stays. Returns those of `debris.attempts` that stay because a rank of them lives.
  virtual Result<std::vector<std::string>> clean(const Debris& debris,
                                                 const CommitGuard& guard) = 0;
};

}  // namespace cairn
