// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint's directory: which are the checkpoint's, which other people's.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/posix/directory.h"
#include "cairn/manifest/record.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

struct OwnFiles {
  std::vector<std::string> beside;  ///< files that belong to the checkpoint beside its entries
  std::string other;                ///< the first that is nobody's we know; empty: there is none
  /// The index lists arrays that no record names: other people's checkpoint is in it as well. Then
  /// the index and what stands beside it are theirs.
  bool shared = false;
};

/// A record without prefixes: nothing of ours but attempts and the mark is expected.
Result<OwnFiles> find_own_files(const Directory& dest, const Record& record);

}  // namespace cairn
