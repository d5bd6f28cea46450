// SPDX-License-Identifier: Apache-2.0
// `Destination`: a place where checkpoints become visible, whole or not at all, and where readers
// find them. One implementation for each kind of storage (open.cc has the rows): `posix` for file
// systems, `memory` for memory://. All pass the suite in destination_test.cc.
//
// What every implementation promises:
//  - a reader sees what was committed last or what was there before, never a mixture;
//  - of two writers of one prefix that began from the same state, one is refused;
//  - a writer that dies before the decision leaves nothing that a reader would take for a
//    checkpoint; after it, the next writer finishes what is left to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cairn/base/uri.h"
#include "cairn/commit/attempt_rank.h"
#include "cairn/commit/commit.h"
#include "cairn/commit/seen_attempts.h"
#include "cairn/commit/snapshot.h"
#include "cairn/storage/store.h"

namespace cairn {

/// Threading: compatible; each save or reader opens one of its own.
class Destination {
 public:
  virtual ~Destination() = default;

  /// As users write it: a path, or a URL.
  virtual const std::string& path() const = 0;

  // Writers.

  /// Makes the place if it is missing, so that the caller's thread hears what is wrong with it. Not
  /// durable before begin().
  virtual Result<void> make() = 0;
  /// Removes what make() made, if nothing was saved there. REQUIRES: no attempt of ours is open.
  virtual void unmake() = 0;
  /// Finishes what others decided and left, then begins an attempt; makes the place if it is
  /// missing. `invalid_argument` (prefix/nested), and what the storage adds: a file system finds
  /// commit/foreign-entry here, others when they commit.
  virtual Result<std::unique_ptr<Attempt>> begin(const AttemptOptions& options) = 0;
  /// This rank's place in an attempt that rank 0 began with several ranks; it enters the phase
  /// "begin". `cancelled` (ranks/gone) if the attempt is not there.
  virtual Result<std::unique_ptr<AttemptRank>> join(const RankOfAttempt& place) = 0;
  /// What AttemptRank::abandon() does, for rank 0 when it could not join.
  virtual Result<void> abandon(const RankOfAttempt& place, const Error& error) = 0;

  // Readers. They wait for no save.

  /// `corrupt` for a damaged record. `not_found` if there is no such directory; on storages without
  /// directories, an empty snapshot.
  virtual Result<Snapshot> snapshot() = 0;
  /// The attempts on their way, and what their ranks do. `not_found` as snapshot().
  virtual Result<std::vector<SeenAttempt>> look() = 0;
  /// The objects below `directory`, a name that Snapshot::locate() gave, as they are now. After a
  /// later save they may be missing, but are never those of that save.
  virtual Result<std::shared_ptr<storage::Store>> open_below(const std::string& directory) = 0;

  // Files in it, read without a lock. Names are relative; "" is the destination.

  struct Child {
    enum class Kind : std::uint8_t { kFile, kDirectory, kLink };
    std::string name;  ///< in the directory that was listed
    Kind kind = Kind::kFile;
  };

  /// Hidden names too. Links are not followed. `not_found`.
  virtual Result<std::vector<Child>> list(const std::string& directory) = 0;
  /// Of a file, or of a link itself. `not_found`.
  virtual Result<storage::ObjectInfo> stat(const std::string& name) = 0;
  /// A small file; nothing if it is not there. `corrupt` (checkpoint/file-too-large) above `limit`.
  virtual Result<std::optional<std::string>> read(const std::string& name, std::uint64_t limit) = 0;
  /// Differs from what it was if a name came or went, or a file was replaced, directly in
  /// `directory`. What was written into a file need not show. `not_found`.
  virtual Result<std::string> version_of(const std::string& directory) = 0;

  // Small files beside the checkpoint: durable, and whole or not at all.

  /// Replaces the file, also while another writer commits. `not_found` if the destination is not
  /// there.
  virtual Result<void> write(const std::string& name, const std::string& text) = 0;
  /// Fine if it is not there.
  virtual Result<void> remove(const std::string& name) = 0;
  /// Computes the new text of a file from the state of the destination and the old text (nullopt:
  /// no file). The same text: nothing is written. nullopt: the file is removed. Must be pure: a
  /// storage may call it again.
  using Change = std::function<Result<std::optional<std::string>>(
      const Snapshot& now, const std::optional<std::string>& before)>;
  /// Changes a file while no writer commits, after finishing decided attempts. If the file is the
  /// mark, attempts of dead writers are removed first, because the new mark would make the
  /// checkpoint look torn. `not_found` if the destination is not there.
  virtual Result<void> update(const std::string& name, const Change& change) = 0;
};

}  // namespace cairn
