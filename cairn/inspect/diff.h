// SPDX-License-Identifier: Apache-2.0
// Two checkpoints side by side: structure first, then values, whatever layout each has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/progress.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

enum class DifferenceKind : std::uint8_t {
  kOnlyInFirst,
  kOnlyInSecond,
  kKind,       ///< an array on one side, a value on the other
  kShape,      ///< the values were not compared
  kDType,      ///< another type; the values are compared where both are floats
  kValue,      ///< values (leaves that are not arrays) differ
  kElements,   ///< elements differ
  kStructure,  ///< equal leaves in other containers
};
/// "only_in_first", "dtype", "elements", ...
std::string_view difference_name(DifferenceKind kind);

struct LeafDifference {
  DifferenceKind kind = DifferenceKind::kElements;
  std::string prefix;
  std::string key;
  std::string first;  ///< dtype and shape, or the value, on each side
  std::string second;
  std::uint64_t elements = 0;  ///< of the array
  std::uint64_t different = 0;
  /// Over elements that are finite on both sides; nullopt if there are none, or the type is not
  /// numeric.
  std::optional<double> max_absolute;
  std::optional<double> max_relative;  ///< |a - b| / max(|a|, |b|)
};

struct DiffReport {
  std::uint64_t equal = 0;                  ///< leaves
  std::uint64_t compared = 0;               ///< leaves on both sides
  std::uint64_t bytes = 0;                  ///< of elements read, on each side
  std::vector<LeafDifference> differences;  ///< by prefix and key
  bool same() const { return differences.empty(); }
};

struct DiffOptions {
  std::optional<std::string> prefix = {};  ///< on both sides; nullopt: all
  ProgressSink progress = {};
};

/// Matches trees by prefix; two checkpoints with one tree each are compared whatever their
/// prefixes. Elements are compared bit by bit: equal NaNs are equal, 0.0 and -0.0 differ. Reopens a
/// checkpoint that is replaced meanwhile.
Result<DiffReport> diff(const Checkpoint& first, const Checkpoint& second,
                        const DiffOptions& options, Runtime& runtime);

}  // namespace cairn
