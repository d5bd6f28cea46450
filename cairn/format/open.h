// SPDX-License-Identifier: Apache-2.0
// Opens an array directory by the files in it: one row for each format in open.cc.
#pragma once

#include "cairn/format/stored_array.h"
#include "cairn/storage/store.h"

namespace cairn::format {

/// The array with its metadata in `directory` ("" for the root of the store); `key` of the result
/// is set. `not_found` (format/no-array) with the names that were tried, `corrupt`
/// (format/metadata-too-large), and errors of the format about its metadata.
Result<StoredArray> open_array(storage::Store& store, std::string_view directory);

/// Does the directory hold an array of a format that open_array() knows?
Result<bool> is_array(storage::Store& store, std::string_view directory);

}  // namespace cairn::format
