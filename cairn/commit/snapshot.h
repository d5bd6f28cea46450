// SPDX-License-Identifier: Apache-2.0
// What a reader sees of a destination: the record, or the plan of a decided attempt whose moves are
// not finished.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cairn/commit/attempt_view.h"
#include "cairn/manifest/record.h"

namespace cairn {

/// What a reader sees of a destination: taken without a lock, one consistent state.
struct Snapshot {
  std::optional<Record> record;  ///< the committed state; nothing: no file of ours decides here
  /// Where an entry or manifest named in the record, or a file that a save replaces, lies now,
  /// relative to the destination: its own name, or below a decided attempt whose moves are not
  /// finished.
  std::string locate(const std::string& name) const;
  /// Text of metadata.json, in place or staged in a decided attempt.
  std::optional<std::string> mark;
  std::vector<AttemptView> attempts;  ///< without abandoned ones
  /// An undecided attempt of a dead writer lies inside that began before this mark was there.
  bool torn = false;

  std::map<std::string, std::string> moved;  ///< for locate(): entry and where it lies

  /// Differs from that of another snapshot if anything was committed or moved between the two.
  std::string version() const;
};

/// Longest mark that is written and read.
constexpr std::size_t kMaxMarkBytes = std::size_t{64} << 20;

/// How often a reader starts again at most; each time somebody must have committed meanwhile.
constexpr int kMostReopenings = 100;

}  // namespace cairn
