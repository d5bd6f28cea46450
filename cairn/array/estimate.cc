// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/estimate.h"

#include <algorithm>

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

std::vector<Array> chunk_tensor_by_memory(const Array& array, std::uint64_t memory_limit) {
  const std::uint64_t count = ceil_div(packed_nbytes(array.dtype(), array.elements()),
                                       std::max<std::uint64_t>(memory_limit, 1));
  const Shape& shape = array.shape();
  if (count <= 1 || shape.empty() || static_cast<std::uint64_t>(shape[0]) < count) return {array};
  const auto size = shape[0] / static_cast<Index>(count);
  std::vector<Array> chunks;
  Box box = Box::whole(shape);
  for (std::uint64_t i = 0; i < count; ++i) {
    box.begin[0] = static_cast<Index>(i) * size;
    box.end[0] = i + 1 == count ? shape[0] : box.begin[0] + size;
    chunks.push_back(array.slice(box));
  }
  return chunks;
}

Result<std::string> compute_checksum(const Array& array) {
  CAIRN_TRY_ASSIGN(const Array dense, array.to_dense());
  return sha256_hex(dense.bytes());
}

}  // namespace cairn
