// SPDX-License-Identifier: Apache-2.0
// Files and directories of other systems that are not read here: recognised by their first bytes or
// by the names in them, so that the error says what they are and what to do, instead of reporting
// damage. One row for each kind in strangers.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/error.h"
#include "cairn/storage/store.h"

namespace cairn {

/// `unimplemented` (stranger/zip, stranger/npy, stranger/pickle, stranger/hdf5, stranger/gguf,
/// stranger/gzip, stranger/msgpack); nullopt if it may be a safetensors file, or cannot be read.
std::optional<Error> recognise_file(storage::Store& store, const std::string& name);

/// The kind that recognise_file() recognises, in words: "a NumPy .npy file"; nullopt likewise.
std::optional<std::string_view> kind_of_file(storage::Store& store, const std::string& name);

/// Recognises a directory by the names directly in it. `unimplemented` (stranger/orbax,
/// stranger/ocdbt, stranger/torch-dcp, stranger/zarr3, stranger/pytorch-bin).
std::optional<Error> recognise_directory(const std::vector<std::string>& files);

}  // namespace cairn
