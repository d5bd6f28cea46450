// SPDX-License-Identifier: Apache-2.0
// The files of a checkpoint's directory: which are the checkpoint's, which other people's.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/destination.h"
#include "cairn/manifest/record.h"

namespace cairn {

struct OwnFiles {
  std::vector<std::string> beside;  ///< files of the checkpoint beside its entries, sorted
  std::string other;                ///< the first that is nobody's we know; empty: there is none
  /// The index lists arrays that no record names: other people's checkpoint is in it as well. Then
  /// the index and what stands beside it are theirs.
  bool shared = false;
};

/// A record without prefixes: nothing of ours but attempts and the mark is expected.
Result<OwnFiles> find_own_files(Destination& dest, const Record& record);

}  // namespace cairn
