// SPDX-License-Identifier: Apache-2.0
// `RankBoard`: how the ranks of one attempt communicate through the storage that they save to:
// phases, reports, and one outcome. One implementation for each storage; attempt_rank.h
// says what the ranks do with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/result.h"
#include "cairn/commit/rank_phase.h"
#include "cairn/storage/store.h"

namespace cairn {

/// A report that can be read.
struct PostedReport {
  int rank = 0;
  std::string stage;
};

/// How an attempt ended: committed, or the error it was abandoned with. Nothing: undecided.
using Ending = std::optional<Result<void>>;

/// Threading: compatible; data(), pieces(), enter() and count() are safe.
class RankBoard {
 public:
  virtual ~RankBoard() = default;

  /// Where the data of the attempt goes, and what ranks leave for each other.
  virtual storage::Store& data() = 0;
  virtual storage::Store& pieces() = 0;

  /// This rank's own phase.
  virtual Result<void> enter(std::string_view phase) = 0;
  virtual void count(std::uint64_t done, std::uint64_t total) = 0;
  /// What a rank said last; nothing if it has not come.
  virtual std::optional<SeenPhase> look_at(int rank) const = 0;
  /// Is the process that began the attempt known to be dead?
  virtual bool leader_is_dead() = 0;

  /// Visible to the others whole or not at all.
  virtual Result<void> post(std::string_view stage, int rank, std::string_view text) = 0;
  /// `not_found` if the attempt is gone; `unavailable`: ask again.
  virtual Result<std::vector<PostedReport>> posted() const = 0;
  virtual bool has_posted(int rank, std::string_view stage) const = 0;
  /// Nothing if the attempt is gone meanwhile.
  virtual Result<std::optional<std::string>> read(int rank, std::string_view stage) const = 0;

  /// `unavailable`: ask again.
  virtual Result<Ending> ending() const = 0;
  /// Exclusive: fails if the outcome is there already, whichever it is. `resource_exhausted`: there
  /// is no space to say so.
  virtual Result<void> abandon(const Error& error) = 0;
  /// Makes sure that an outcome which was seen lasts.
  virtual Result<void> make_outcome_durable() = 0;
  /// Deletes the data of the attempt to free space. REQUIRES: the attempt cannot be committed any
  /// more.
  virtual void make_room() = 0;
  /// The error for an attempt that went away undecided.
  virtual Error gone() const = 0;
};

}  // namespace cairn
