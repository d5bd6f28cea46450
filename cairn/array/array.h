// SPDX-License-Identifier: Apache-2.0
// `Array`: typed, strided host memory with an owner.
#pragma once

#include "cairn/array/dtype.h"
#include "cairn/array/shape.h"
#include "cairn/base/buffer.h"

namespace cairn {

/// C-order strides of a dense array.
Strides dense_strides(const Shape& shape, std::size_t item_size);
/// The same in Fortran order.
Strides fortran_strides(const Shape& shape, std::size_t item_size);

/// Bytes of a dense array. `invalid_argument` for an impossible shape: shape/negative,
/// shape/overflow, shape/rank.
Result<std::uint64_t> dense_nbytes(DType dtype, const Shape& shape);

/// dtype, shape, strides and a Buffer. Copies share the memory. Threading: compatible.
class Array {
 public:
  /// A float32 of shape (0,).
  Array() = default;

  /// Dense C-order, uninitialised or zero. `invalid_argument` for an impossible shape,
  /// `resource_exhausted` for too little memory.
  static Result<Array> allocate(DType dtype, Shape shape);
  static Result<Array> zeros(DType dtype, Shape shape);
  /// Dense C-order over existing bytes. `invalid_argument` (array/size-mismatch).
  static Result<Array> wrap(DType dtype, Shape shape, Buffer bytes);
  /// Any strides; the first element is `offset` bytes into the buffer. `invalid_argument`
  /// (array/out-of-bounds) if any element would lie outside it.
  static Result<Array> wrap_strided(DType dtype, Shape shape, Strides strides, Buffer bytes,
                                    std::size_t offset = 0);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  const Buffer& buffer() const { return buffer_; }
  std::uint64_t elements() const;
  /// elements() * item_size(dtype()).
  std::uint64_t nbytes() const;
  /// Elements lie in C order without gaps.
  bool dense() const;

  /// First element.
  const std::byte* data() const { return buffer_.data() + offset_; }
  /// REQUIRES: !buffer().immutable().
  std::byte* mutable_data() { return buffer_.mutable_bytes().data() + offset_; }
  /// REQUIRES: dense().
  ByteSpan bytes() const { return {data(), static_cast<std::size_t>(nbytes())}; }
  MutableByteSpan mutable_bytes() { return {mutable_data(), static_cast<std::size_t>(nbytes())}; }

  /// A view of a part, sharing the memory. REQUIRES: `box` lies within shape().
  Array slice(const Box& box) const;
  /// Same memory if dense, else a dense copy.
  Result<Array> to_dense() const;
  /// Same memory under another shape. `invalid_argument` (array/size-mismatch, array/not-dense).
  Result<Array> reshaped(Shape shape) const;

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_ = {0};
  Strides strides_ = {4};
  Buffer buffer_;
  std::size_t offset_ = 0;
};

/// `from` into `to`, which have equal dtype and shape. `invalid_argument` (array/shape-mismatch,
/// array/dtype-mismatch). REQUIRES: !to.buffer().immutable(); no overlap.
Result<void> copy_array(const Array& from, Array& to);

}  // namespace cairn
