// SPDX-License-Identifier: Apache-2.0
// Opens safetensors files in a store: header only, no data.
#pragma once

#include "cairn/format/safetensors/header.h"
#include "cairn/storage/store.h"

namespace cairn::format::safetensors {

/// Reads and checks the header of `key`. Memory is bounded by the header's true length: a length field
/// beyond the file or the cap allocates nothing.
Result<Header> read_header(storage::Store& store, std::string_view key);

}  // namespace cairn::format::safetensors
