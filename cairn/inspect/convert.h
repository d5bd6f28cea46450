// SPDX-License-Identifier: Apache-2.0
// Converts checkpoints to another layout, type or split. Streams: no array is ever held whole.
#pragma once

#include <optional>
#include <string>

#include "cairn/layout/checkpoint.h"
#include "cairn/save/save.h"

namespace cairn {

struct ConvertOptions {
  std::optional<std::string> prefix = {};  ///< nullopt: all
  /// How the result is stored. Step, metadata and extras of the source are kept unless they are set
  /// here.
  SaveOptions save = {};
};

/// Reads and checks `from`, and saves it at `path` in one atomic commit. A chunk that must be
/// decoded is decoded once for each piece that needs it. If `from` is replaced meanwhile, reopens
/// it and starts again. Errors of reading and of save_checkpoint(); `already_exists`
/// (convert/onto-itself) if `path` is `from` and SaveOptions::overwrite is off.
Result<SaveReport> convert(const Checkpoint& from, const std::string& path,
                           const ConvertOptions& options, Runtime& runtime);

}  // namespace cairn
