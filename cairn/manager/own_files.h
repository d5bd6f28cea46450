// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint's directory: which are the checkpoint's, which other people's, and
// whether any has changed.
#pragma once

#include <string>
#include <vector>

#include "cairn/checkpoint/commit/directory.h"
#include "cairn/checkpoint/record.h"
#include "cairn/checkpoint/runtime.h"

namespace cairn::inline manager {

/// The mark of a checkpoint that turned out to be torn.
constexpr std::string_view kTornMarkName = "metadata.json.torn";

struct OwnFiles {
  std::vector<std::string> beside;  ///< files that belong to the checkpoint beside its entries
  std::string other;                ///< the first that is nobody's we know; empty: there is none
  /// The index lists arrays that no record names: other people's checkpoint is in it as well. Then
  /// the index and what stands beside it are theirs.
  bool shared = false;
};

/// A record without prefixes: nothing of ours but attempts and the mark is expected.
Result<OwnFiles> find_own_files(const Directory& dest, const Record& record);

/// Another text once a file below `path` has come, gone, been replaced or written to (by its time);
/// our locks and attempts count for nothing. Empty if there is no file. Looks at every file, and
/// opens none.
Result<std::string> state_of_files(const std::string& path, Runtime& runtime);

}  // namespace cairn::inline manager
