// SPDX-License-Identifier: Apache-2.0
// Which files in a checkpoint's directory belong to the checkpoint, and which to others.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/destination.h"
#include "cairn/manifest/record.h"

namespace cairn {

struct OwnFiles {
  std::vector<std::string> beside;  ///< files of the checkpoint beside its entries, sorted
  std::string other;                ///< the first file that is not ours; empty: none
  /// The index lists arrays that our record does not name: another system's checkpoint lies there
  /// too. The index and the files beside it are then theirs.
  bool shared = false;
};

/// A record without prefixes: nothing of ours but attempts and the mark is expected.
Result<OwnFiles> find_own_files(Destination& dest, const Record& record);

}  // namespace cairn
