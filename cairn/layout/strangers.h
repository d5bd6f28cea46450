// SPDX-License-Identifier: Apache-2.0
// Files and directories of other systems that are not read here: recognised by their first bytes or
// by the names in them, so that the error says what they are and what to do, not that they are
// damaged. One row a kind in strangers.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/error.h"
#include "cairn/storage/store.h"

namespace cairn {

/// `unimplemented` (stranger/zip, stranger/npy, stranger/pickle, stranger/hdf5, stranger/gguf,
/// stranger/gzip, stranger/msgpack), or nothing: it may be a safetensors file, or cannot be read.
std::optional<Error> recognise_file(storage::Store& store, const std::string& name);

/// What recognise_file() would name, in words: "a NumPy .npy file". Nothing likewise.
std::optional<std::string_view> kind_of_file(storage::Store& store, const std::string& name);

/// By the names that lie directly in a directory. `unimplemented` (stranger/orbax, stranger/ocdbt,
/// stranger/torch-dcp, stranger/zarr3, stranger/pytorch-bin).
std::optional<Error> recognise_directory(const std::vector<std::string>& files);

}  // namespace cairn
