// SPDX-License-Identifier: Apache-2.0
// `<prefix>_structure.json`, by which the reference system keeps the containers of a tree and the
// leaves that are no arrays, in pickles. They are read without executing them.
// `eformer_structure_writer.h` is the other direction.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/base/json.h"
#include "cairn/tree/key_path.h"
#include "cairn/tree/value.h"

namespace cairn {

/// Longest file that is read.
constexpr std::size_t kMaxEformerStructureBytes = std::size_t{256} << 20;

/// What the file says of a tree.
struct EformerStructure {
  /// As tree/structure.h has it; null if the containers cannot be made out.
  Json structure;
  /// Directories of the arrays below the checkpoint. In the order of `structure`, if there is one.
  std::vector<std::string> arrays;
  std::vector<KeyPath> paths;  ///< of the arrays; empty if there is no structure
  Json extras;                 ///< what the user gave with the tree; an object, or null
  /// Leaves that are no arrays.
  std::vector<std::pair<KeyPath, Value>> values;
  /// Sentences for a person: what could not be made out, and what became of it.
  std::vector<std::string> notes;
};

/// Pure; hostile bytes. `corrupt` (structure-file/bad-json, structure-file/bad-member: something is
/// missing, of the wrong type, or does not fit the rest; structure-file/other-tree). Pickles that
/// only execution could make sense of are no errors: `notes` has them.
Result<EformerStructure> parse_eformer_structure(std::string_view text, const std::string& prefix);

}  // namespace cairn
