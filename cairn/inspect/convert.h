// SPDX-License-Identifier: Apache-2.0
// Another layout, type or split of the same trees, streamed: no array is ever held whole.
#pragma once

#include <optional>
#include <string>

#include "cairn/layout/checkpoint.h"
#include "cairn/save/save.h"

namespace cairn {

struct ConvertOptions {
  std::optional<std::string> prefix = {};  ///< nothing: all
  /// How the result is stored. Step, metadata and extras of the source are kept unless they are set
  /// here.
  SaveOptions save = {};
};

/// Reads `from`, checked, and saves it at `path`, decided in one act as every save. Chunks that
/// must be decoded are decoded once for each piece that needs them. If `from` is replaced
/// meanwhile, it is opened again, and the save begins anew. Errors of reading and of
/// save_checkpoint().
Result<SaveReport> convert(const Checkpoint& from, const std::string& path,
                           const ConvertOptions& options, Runtime& runtime);

}  // namespace cairn
