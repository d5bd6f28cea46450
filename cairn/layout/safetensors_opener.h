// SPDX-License-Identifier: Apache-2.0
// safetensors files: one, or a set with an index.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/layout/checkpoint.h"
#include "cairn/layout/directory_view.h"

namespace cairn {

/// nullopt if there is no such file in the directory.
Result<std::optional<Checkpoint>> open_safetensors(const DirectoryView& view, Runtime& runtime);

/// One safetensors file: with the manifest inside it, or as foreign. Keeps the file open, so that
/// header and data stay those of one file even if it is replaced.
Result<OpenedPrefix> open_safetensors_file(const std::shared_ptr<storage::Store>& store,
                                           const std::string& name);

}  // namespace cairn
