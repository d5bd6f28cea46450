// SPDX-License-Identifier: Apache-2.0
// What a commit looks at before it moves something away.
#pragma once

#include <string>

#include "cairn/checkpoint/commit/directory.h"

namespace cairn::inline checkpoint {

/// Names in the destination that are about to be replaced must be a checkpoint's: ours by the
/// record, or another system's by the index or by being safetensors files. `already_exists`
/// (commit/foreign-entry).
Result<void> check_replaceable(const Directory& dest, const std::string& name,
                               const std::string& prefix);

/// A link in the place of what we wrote was put there by somebody: neither it nor what it leads to
/// is ours. `failed_precondition` (commit/symlink).
Result<void> check_no_link(const Directory& dest, const std::string& name);

}  // namespace cairn::inline checkpoint
