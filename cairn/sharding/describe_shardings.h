// SPDX-License-Identifier: Apache-2.0
// Shardings in words, by which ranks notice that they do not mean the same ones.
#pragma once

#include <string>
#include <vector>

#include "cairn/sharding/sharding.h"

namespace cairn {

/// Meshes are few and large: each is described once, and then known by its number. Linear in
/// devices, once each mesh.
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

/// A digest of how an array of this shape lies on its devices.
std::string sharding_fingerprint(const Sharding& sharding, const Shape& shape);

}  // namespace cairn
