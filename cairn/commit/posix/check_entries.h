// SPDX-License-Identifier: Apache-2.0
// What a save may put into a destination, and what it may take away.
#pragma once

#include <string>
#include <vector>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/manifest/record.h"

namespace cairn {

/// `already_exists` (commit/foreign-entry) if `name` is there and neither another system's index
/// lists the prefix nor the name is one of a safetensors checkpoint.
Result<void> check_replaceable(const Directory& dest, const std::string& name,
                               const std::string& prefix);

/// `failed_precondition` (commit/symlink) if `name` is a symbolic link.
Result<void> check_no_link(const Directory& dest, const std::string& name);

/// Before the decision: may `saved` stand beside and in the place of what the record names?
/// `invalid_argument` (prefix/nested), `already_exists` (commit/foreign-entry).
Result<void> check_entries(const Directory& dest, const std::vector<RecordPrefix>& saved,
                           const Record& before);

/// Before an attempt that somebody left is finished: a copied directory may bring one that no save
/// of ours made. What still has to move out must be named by the record or replaceable, and what
/// has to move in must be named by the attempt's own record and meet nothing. `failed_precondition`
/// (commit/unknown-entry).
Result<void> check_moves(const Directory& dest, const std::string& attempt, const Outcome& outcome);

}  // namespace cairn
