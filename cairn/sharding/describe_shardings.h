// SPDX-License-Identifier: Apache-2.0
// Shardings in words, with which ranks detect that theirs differ.
#pragma once

#include <string>
#include <vector>

#include "cairn/sharding/sharding.h"

namespace cairn {

/// Meshes are few and large: each is described once, then referred to by its number. Linear in
/// devices, once for each mesh.
class ShardingDescriber {
 public:
  std::string describe(const Sharding& sharding, const Shape& shape);
  /// The meshes so far, a line each.
  const std::string& meshes() const { return text_; }

 private:
  std::size_t number_of(const Mesh& mesh);

  std::vector<Mesh> meshes_;
  std::string text_;
};

/// A digest of the sharding of an array of this shape.
std::string sharding_fingerprint(const Sharding& sharding, const Shape& shape);

}  // namespace cairn
