// SPDX-License-Identifier: Apache-2.0
// One array of a checkpoint on its way to the caller, for loads that are put together by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/load/load_options.h"
#include "cairn/runtime/runtime.h"
#include "cairn/tree/flatten.h"

namespace cairn {

struct ProcessOptions {
  const LeafFunctions* shard_fns = nullptr;  ///< null: none; by key path as text
  Mismatch mismatch = Mismatch::kRefused;    ///< for an array that has no function among them
  LeafCallback callback = {};                ///< sees what the function made of it
  std::optional<DType> dtype = {};           ///< in the end: put_dtype()
};

struct ProcessedArray {
  std::string key;
  Leaf leaf;
  std::size_t mismatches = 0;  ///< 1: it had no function
};

/// Reads an array whole, then gives it to its function, to the callback and to put_dtype().
/// `not_found` (load/key-missing), `invalid_argument` (tree/missing-function), errors of
/// read_boxes() and of the functions.
Result<ProcessedArray> read_process_array(const OpenedPrefix& prefix, const KeyPath& key,
                                          const ProcessOptions& options, Runtime& runtime);

}  // namespace cairn
