// SPDX-License-Identifier: Apache-2.0
// Finds the leaf that a text names.
#pragma once

#include <optional>
#include <string>

#include "cairn/layout/checkpoint.h"

namespace cairn {

/// A leaf of an opened checkpoint. Keeps pointers into it.
struct FoundLeaf {
  const OpenedPrefix* prefix = nullptr;
  const KeyPath* path = nullptr;
  std::optional<std::size_t> array = {};  ///< its index, if it is one
  const Value* value = nullptr;           ///< else this

  /// "kernel of prefix model".
  std::string name() const;
  /// `key`, `prefix`, `path`.
  Json::Object json() const;
};

/// Looks for the key path in every prefix, for "<prefix>.<key path>" and for the stored name.
/// `not_found` (load/key-missing); `invalid_argument` (load/key-ambiguous, with all leaves that
/// match; key-path errors). Linear in the leaves.
Result<FoundLeaf> find_leaf(const Checkpoint& checkpoint, const std::string& key,
                            const std::optional<std::string>& prefix);

}  // namespace cairn
