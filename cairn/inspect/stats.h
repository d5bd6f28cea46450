// SPDX-License-Identifier: Apache-2.0
// Statistics of the numbers in a checkpoint, array by array, without holding any array whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/progress.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Of one array. Complex numbers count by their magnitude, bools as 0 and 1. Minimum, maximum, mean
/// and deviation cover finite elements alone; nullopt if there are none.
struct ArrayStats {
  std::string prefix;
  std::string key;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zeros = 0;
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> mean;
  std::optional<double> std;  ///< of the population
};

struct StatsOptions {
  std::optional<std::string> prefix = {};  ///< nullopt: all
  std::vector<KeyPath> keys = {};          ///< leaves and subtrees; empty: all
  ProgressSink progress = {};
};

/// In the order of the trees. Reopens a checkpoint that is replaced meanwhile. Errors of reading.
Result<std::vector<ArrayStats>> stats(const Checkpoint& checkpoint, const StatsOptions& options,
                                      Runtime& runtime);

}  // namespace cairn
