// SPDX-License-Identifier: Apache-2.0
// Trees for property tests: one seed is one tree, the same on every machine with this library.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cairn/tree/tree.h"

namespace cairn::testing {

using Random = std::mt19937_64;

struct RandomTreeOptions {
  std::vector<DType> dtypes;         ///< of the arrays; empty: every type
  std::size_t max_rank = 6;          ///< ranks from 0 on
  std::uint64_t max_elements = 200;  ///< of one array
  int max_depth = 4;                 ///< containers inside one another
  std::size_t max_children = 5;      ///< of one container; empty ones occur
  bool values = true;                ///< leaves that are not arrays
  bool odd_keys = true;              ///< keys that need encoding, integers, keys beyond ASCII
};

/// Any tree that flatten() takes. All container kinds, None, empty containers, dimensions of size
/// 0.
Tree random_tree(std::uint64_t seed, const RandomTreeOptions& options = {});

/// Any bits that the type can have, NaN with payloads among them.
Array random_array(Random& random, DType dtype, const Shape& shape);
/// Any box that is not empty. REQUIRES: neither is the shape.
Box random_box(Random& random, const Shape& shape);
Shape random_shape(Random& random, const RandomTreeOptions& options = {});
/// Every type of value; floats include NaN with payloads, infinities and -0.0.
Value random_value(Random& random);
/// UTF-8 of any code points.
std::string random_text(Random& random, std::size_t max_code_points);
std::string random_bytes(Random& random, std::size_t max_size);
/// From 0 to n - 1. REQUIRES: n > 0.
std::uint64_t below(Random& random, std::uint64_t n);

/// Where two trees first differ, as a sentence; "" if they are the same: kinds, classes, keys and
/// their types, values and array elements bit for bit. Order counts only where flatten() keeps it.
/// Arrays must be dense.
std::string difference(const Tree& a, const Tree& b);

}  // namespace cairn::testing
