// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/estimate.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Estimate, CountsSmallTypesAsPacked) {
  struct Expected {
    DType dtype;
    Shape shape;
    std::uint64_t nbytes;
  };
  const Expected table[] = {
      {DType::kFloat32, {3, 5}, 60},
      {DType::kInt4, {5}, 3},
      {DType::kUint4, {}, 1},
      {DType::kInt2, {9}, 3},
      {DType::kFloat6E2m3fn, {4}, 3},
      {DType::kFloat6E3m2fn, {5}, 4},
      {DType::kFloat4E2m1fn, {0, 7}, 0},
      {DType::kBool, {9}, 9},
      {DType::kComplex128, {2}, 32},
      {DType::kInt8, {Index{1} << 61}, std::uint64_t{1} << 61},
  };
  for (const Expected& row : table) {
    EXPECT_EQ(*estimate_array_nbytes(row.dtype, row.shape), row.nbytes) << dtype_name(row.dtype);
  }
  EXPECT_EQ(estimate_array_nbytes(DType::kInt4, {-1}).error().reason(), "shape/negative");
  constexpr Index kMost = std::numeric_limits<Index>::max();
  EXPECT_EQ(estimate_array_nbytes(DType::kInt16, {kMost}).error().reason(), "shape/overflow");
}

TEST(Checksum, IsOfTheElementsInCOrder) {
  const auto bytes = as_bytes("abcdef");
  const Array array = *Array::wrap(DType::kUint8, {2, 3}, Buffer::lend(bytes, nullptr));
  EXPECT_EQ(*compute_checksum(array),
            "bef57ec7f53a6d40beb640a780a639c83bc29ac8a9816f1fc6c5c6dcd93c4721");
  const Array turned = *Array::wrap_strided(DType::kUint8, {3, 2}, {1, 3}, array.buffer());
  EXPECT_EQ(*compute_checksum(turned), *compute_checksum(*turned.to_dense()));
  EXPECT_NE(*compute_checksum(turned), *compute_checksum(array));
}

}  // namespace
}  // namespace cairn
