// SPDX-License-Identifier: Apache-2.0
// The saves of a run that a checkpoint continues. A run that goes back to an earlier step and saves
// again leaves a branch behind; the numbers of saves tell the branches apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cairn/base/json.h"

namespace cairn {

/// The member "cairn" of a mark. Checkpoints of other systems have none.
struct Lineage {
  /// Grows with every save of the run, whatever the step: of two saves the later has the higher
  /// number.
  std::uint64_t number = 0;
  /// Numbers of the saves before it on its branch, as closed intervals in ascending order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> history = {};
  /// Name of its directory when it was saved: a copy under another name is not the run's.
  std::string name = {};

  /// Is the save `other` this one, or one before it on its branch?
  bool includes(std::uint64_t other) const;
  /// The next save on this branch, up to and including the save `last`.
  Lineage next(std::uint64_t number, std::uint64_t last) const;

  bool operator==(const Lineage&) const = default;
};

Json to_json(const Lineage& lineage);
/// Pure. Nothing if it is no lineage: the checkpoint is then ordered by its step.
std::optional<Lineage> parse_lineage(const Json& json);

}  // namespace cairn
