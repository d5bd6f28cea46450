// SPDX-License-Identifier: Apache-2.0
// Who may save into a run directory: one job at a time.
//
// `.cairn-owner.json` in the run directory says run id, epoch, host, process and time. Each new
// owner raises the epoch and replaces the file. A commit makes sure, inside the decision, that the
// file is still its own, so a job that was taken over cannot commit any more, however late it wakes
// up. How a storage knows that an owner lives is its own business: a file system by a lock on the
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cairn/base/clock.h"
#include "cairn/base/result.h"
#include "cairn/commit/commit_guard.h"

namespace cairn {

/// What `.cairn-owner.json` holds.
struct OwnerFile {
  std::string run_id;
  std::uint64_t epoch = 0;
  std::string host;
  std::int64_t process = 0;
  std::string boot_id;
  std::string time;  ///< when it became the owner

  bool operator==(const OwnerFile&) const = default;
};
constexpr std::size_t kMaxOwnerBytes = 64 << 10;
std::string dump_owner_file(const OwnerFile& owner);
/// Pure. `corrupt` (owner/bad-file).
Result<OwnerFile> parse_owner_file(std::string_view text);

/// The owner of a run, and whether it lives.
struct SeenOwner {
  OwnerFile file;
  bool alive = false;
};

struct OwnershipOptions {
  std::string run_id = {};  ///< empty: a new one
  bool take_over = false;   ///< even from an owner that lives
};

/// This process as the owner of a run directory, until it is destroyed. Threading: safe. The file
/// system and the clock of the runtime that took it first must outlive it; the runtime need not.
class RunOwner : public std::enable_shared_from_this<RunOwner> {
 public:
  virtual ~RunOwner() = default;

  virtual const std::string& run_id() const = 0;
  virtual std::uint64_t epoch() const = 0;
  /// The next number of a save of the run (lineage.h): above all that this owner gave, and above
  /// `known`.
  virtual std::uint64_t next_number(std::uint64_t known) = 0;
  /// Locks the run and makes sure that it is still ours; let go with what is returned.
  /// `failed_precondition` (run/taken-over) with who took it, or run/owner-gone if somebody removed
  /// the file.
  virtual Result<std::shared_ptr<void>> hold() = 0;

  /// hold(), for SaveInternals::guard and RemovalOptions::guard; keeps the owner alive.
  CommitGuard guard();
};

/// The file of who takes the run now, after `before`. `failed_precondition` (run/owned) with host,
/// process and time of `before` if that one lives and nobody asked to take over.
Result<OwnerFile> next_owner(const std::string& run, const std::optional<SeenOwner>& before,
                             const OwnershipOptions& options, Clock& clock);
/// Is the run still that of `mine`? The errors of hold().
Result<void> check_owner(const std::string& run, const OwnerFile& mine,
                         const std::optional<OwnerFile>& now);

/// A new run's name: 32 hex digits.
std::string new_run_id();

}  // namespace cairn
