// SPDX-License-Identifier: Apache-2.0
// Opens safetensors files in a store: headers and index only, no data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cairn/format/safetensors/header.h"
#include "cairn/format/safetensors/index.h"
#include "cairn/storage/store.h"

namespace cairn::format::safetensors {

/// Reads and checks the header of `key`. Memory is bounded by the header's true length: a length
/// field beyond the file or the cap allocates nothing. Errors of parse_header_length(),
/// parse_header() and Store::open(), with the file as their place.
Result<Header> read_header(storage::Store& store, std::string_view key);

/// Reads and checks an index, not its parts. Errors of parse_index() and storage::read_all().
Result<Index> read_index(storage::Store& store, std::string_view key);

struct Part {
  std::string key;  ///< in the store
  Header header;
};

/// The header of every part that `index` names, in the order of Index::parts(). Parts lie below
/// `directory` ("" for the root of the store), where the index lies. `corrupt`:
/// safetensors-index/missing-part, safetensors-index/part-is-directory,
/// safetensors-index/tensor-not-in-part. What a part holds beyond the index is not an error.
Result<std::vector<Part>> read_parts(storage::Store& store, std::string_view directory,
                                     const Index& index);

}  // namespace cairn::format::safetensors
