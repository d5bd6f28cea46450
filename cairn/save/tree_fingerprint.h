// SPDX-License-Identifier: Apache-2.0
// Digests by which ranks notice that they do not save the same thing.
#pragma once

#include <string>
#include <vector>

#include "cairn/save/prepare.h"

namespace cairn {

/// What must be the same on every rank, and its digests. Linear in leaves, plus once each mesh.
class TreeFingerprint {
 public:
  static TreeFingerprint of(const std::vector<PreparedTree>& trees, const SaveOptions& options);

  Json to_json() const;
  /// What differs, in words; "" if nothing does.
  std::string difference(const Json& theirs) const;

 private:
  std::vector<std::pair<std::string, std::string>> parts_;  // what, digest
};

}  // namespace cairn
