// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/estimate.h"

#include "cairn/base/checked.h"
#include "cairn/base/sha256.h"

namespace cairn {
namespace {

std::uint64_t packed_nbytes(DType dtype, std::uint64_t elements) {
  if (item_size(dtype) > 1) return elements * item_size(dtype);
  // Without the product with the bits, which could overflow.
  const auto bits = static_cast<std::uint64_t>(bit_width(dtype));
  return elements / 8 * bits + ceil_div(elements % 8 * bits, std::uint64_t{8});
}

}  // namespace

Result<std::uint64_t> estimate_array_nbytes(DType dtype, const Shape& shape) {
  CAIRN_TRY(dense_nbytes(dtype, shape));
  return packed_nbytes(dtype, Box::whole(shape).elements());
}

Result<std::string> compute_checksum(const Array& array) {
  CAIRN_TRY_ASSIGN(const Array dense, array.to_dense());
  return sha256_hex(dense.bytes());
}

}  // namespace cairn
