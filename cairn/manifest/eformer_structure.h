// SPDX-License-Identifier: Apache-2.0
// `<prefix>_structure.json`, in which the reference system keeps the containers of a tree and its
// other leaves, as pickles. They are read without executing them. `eformer_structure_writer.h` is
// the other direction.
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

/// A tree as the file describes it.
struct EformerStructure {
  /// As in tree/structure.h; null if the containers cannot be recovered.
  Json structure;
  /// Directories of the arrays below the checkpoint. In the order of `structure`, if there is one.
  std::vector<std::string> arrays;
  std::vector<KeyPath> paths;  ///< of the arrays; empty if there is no structure
  Json extras;                 ///< what the user gave with the tree; an object, or null
  /// Leaves that are not arrays.
  std::vector<std::pair<KeyPath, Value>> values;
  /// Sentences for people: what could not be recovered, and what took its place.
  std::vector<std::string> notes;
};

/// Pure; hostile bytes. `corrupt` (structure-file/bad-json, structure-file/bad-member: missing, of
/// the wrong type, or inconsistent; structure-file/other-tree). Pickles that only execution could
/// give a meaning are not errors: they are listed in `notes`.
Result<EformerStructure> parse_eformer_structure(std::string_view text, const std::string& prefix);

}  // namespace cairn
