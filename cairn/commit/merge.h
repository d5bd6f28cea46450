// SPDX-License-Identifier: Apache-2.0
// How a commit changes the existing record and index: the same on every storage.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/commit/commit.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/record.h"

namespace cairn {

/// Can these be saved beside one another? `invalid_argument` (prefix/nested and those of
/// check_prefix()).
Result<void> check_prefixes(const std::vector<std::string>& prefixes);
/// May `saved` stand beside what the record names? `invalid_argument` (prefix/nested).
Result<void> check_nesting(const std::vector<RecordPrefix>& saved, const Record& before);

/// Prefixes, and the attempt that had committed each, or "".
using PrefixVersions = std::vector<std::pair<std::string, std::string>>;
PrefixVersions versions_in(const Record& record, const std::vector<std::string>& prefixes);
/// `already_exists` (commit/prefix-changed) if the record names another attempt for one of them.
Result<void> check_versions(const PrefixVersions& before, const Record& now);

/// What a reader would refuse must not be decided: `invalid_argument` (commit/file-too-large).
Result<void> check_length(std::string_view name, std::size_t bytes, std::size_t limit);

std::vector<RecordPrefix> records_of(const CommitRequest& request);
IndexChanges index_changes(const CommitRequest& request);
/// The record after the commit of `attempt`.
Record merged_record(const CommitRequest& request, const std::string& attempt,
                     const std::string& run_id, Record record);

}  // namespace cairn
