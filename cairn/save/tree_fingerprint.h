// SPDX-License-Identifier: Apache-2.0
// Digests with which ranks detect that they save different things.
#pragma once

#include <string>
#include <vector>

#include "cairn/save/prepare.h"

namespace cairn {

/// Digests of what must be equal on every rank. Linear in leaves, plus once for each mesh.
class TreeFingerprint {
 public:
  static TreeFingerprint of(const std::vector<PreparedTree>& trees, const SaveOptions& options);

  Json to_json() const;
  /// The differences, in words; "" if there are none.
  std::string difference(const Json& theirs) const;

 private:
  std::vector<std::pair<std::string, std::string>> parts_;  // what, digest
};

}  // namespace cairn
