// SPDX-License-Identifier: Apache-2.0
// Our own checkpoints: the record lists the prefixes, and each manifest describes one.
#pragma once

#include <optional>

#include "cairn/layout/checkpoint.h"
#include "cairn/layout/directory_view.h"

namespace cairn {

struct Snapshot;

/// nullopt if there is no record of ours.
Result<std::optional<Checkpoint>> open_committed(const DirectoryView& view, Runtime& runtime);

/// One prefix of our record, from its manifest. Errors of reading the manifest.
Result<OpenedPrefix> open_recorded(const DirectoryView& view, const Snapshot& snapshot,
                                   const RecordPrefix& recorded);

}  // namespace cairn
