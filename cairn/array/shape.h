// SPDX-License-Identifier: Apache-2.0
// Sizes of dimensions, strides, and boxes: half-open ranges of indices.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// Index type of dimensions. Never negative in a valid shape.
using Index = std::int64_t;
using Shape = std::vector<Index>;

/// Largest rank that is accepted from outside; NumPy's and TensorStore's are 64 and 32.
constexpr std::size_t kMaxRank = 32;

/// Byte steps between neighbours along each dimension; may be negative or zero.
using Strides = std::vector<std::int64_t>;

/// Product of the dimensions; 1 for rank 0. `invalid_argument` for an impossible shape:
/// shape/negative, shape/overflow, shape/rank.
Result<std::uint64_t> element_count(const Shape& shape);
/// "(2, 3)", "()", as people write them.
std::string to_string(const Shape& shape);

/// begin[i] <= x[i] < end[i]. Threading: compatible.
struct Box {
  Shape begin;
  Shape end;

  /// The box of a whole array.
  static Box whole(const Shape& shape);

  std::size_t rank() const { return begin.size(); }
  Shape shape() const;
  bool empty() const;
  /// REQUIRES: a box that came from a valid shape (does not overflow).
  std::uint64_t elements() const;
  bool contains(const Box& other) const;
  /// The intersection; empty() if there is none. REQUIRES: equal rank.
  Box intersect(const Box& other) const;
  /// The same box in coordinates relative to `origin`. REQUIRES: equal rank.
  Box relative_to(const Shape& origin) const;
  /// The inverse of relative coordinates: this box, moved by `origin`. REQUIRES: equal rank.
  Box moved_by(const Shape& origin) const;

  bool operator==(const Box&) const = default;
  /// "[0:4, 2:8]"
  std::string to_string() const;
};

/// Text such as "0:4,:,3" against a shape: a missing bound is the end of the dimension, a single
/// number keeps the dimension with size 1, negative numbers count from the end, missing trailing
/// dimensions are whole. `invalid_argument` (slice/syntax, slice/rank, slice/range).
Result<Box> parse_slice(std::string_view text, const Shape& shape);

}  // namespace cairn
