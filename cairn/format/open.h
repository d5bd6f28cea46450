// SPDX-License-Identifier: Apache-2.0
// Opens an array directory by what lies in it: one row a format in open.cc.
#pragma once

#include "cairn/format/stored_array.h"
#include "cairn/storage/store.h"

namespace cairn::format {

/// The array whose metadata lies in `directory` ("" for the root of the store); `key` of the result
/// is set. `not_found` (format/no-array) with the names that were looked for, `corrupt`
/// (format/metadata-too-large), and what the format says of its metadata.
Result<StoredArray> open_array(storage::Store& store, std::string_view directory);

/// Does the directory hold an array of a format that open_array() knows?
Result<bool> is_array(storage::Store& store, std::string_view directory);

}  // namespace cairn::format
