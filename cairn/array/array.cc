// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/array.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "cairn/array/strided_copy.h"
#include "cairn/base/checked.h"

namespace cairn {
namespace {

// Wraps around where an empty array's other dimensions are too large; nobody follows those strides.
std::int64_t next_stride(std::int64_t stride, Index size) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(stride) *
                                   static_cast<std::uint64_t>(std::max<Index>(size, 1)));
}

// First byte and end of what the elements touch, from the element at index 0. Nothing on overflow.
struct Extent {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
std::optional<Extent> extent_of(const Shape& shape, const Strides& strides, std::size_t item) {
  Extent extent{0, static_cast<std::int64_t>(item)};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const auto reach = checked_mul<std::int64_t>(shape[i] - 1, strides[i]);
    if (!reach) return std::nullopt;
    std::int64_t& side = *reach < 0 ? extent.low : extent.high;
    const auto moved = checked_add(side, *reach);
    if (!moved) return std::nullopt;
    side = *moved;
  }
  return extent;
}

bool inside(const Extent& extent, std::size_t offset, std::size_t size) {
  if (offset > size) return false;
  const auto before = static_cast<std::int64_t>(offset);
  const auto after = static_cast<std::int64_t>(size - offset);
  return extent.low >= -before && extent.high <= after;
}

}  // namespace

Result<std::uint64_t> dense_nbytes(DType dtype, const Shape& shape) {
  CAIRN_TRY_ASSIGN(const std::uint64_t count, element_count(shape));
  const auto bytes = checked_mul<std::uint64_t>(count, item_size(dtype));
  if (!bytes || *bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return Error(Code::kInvalidArgument, "shape/overflow",
                 fmt::format("{} of shape {} has more bytes than can be counted", dtype_name(dtype),
                             to_string(shape)));
  }
  return *bytes;
}

Strides dense_strides(const Shape& shape, std::size_t item_size) {
  Strides strides(shape.size());
  auto stride = static_cast<std::int64_t>(item_size);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride = next_stride(stride, shape[i]);
  }
  return strides;
}

Strides fortran_strides(const Shape& shape, std::size_t item_size) {
  Strides strides(shape.size());
  auto stride = static_cast<std::int64_t>(item_size);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    stride = next_stride(stride, shape[i]);
  }
  return strides;
}

Result<Array> Array::allocate(DType dtype, Shape shape) {
  CAIRN_TRY_ASSIGN(const std::uint64_t size, dense_nbytes(dtype, shape));
  CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(size));
  return wrap(dtype, std::move(shape), std::move(bytes));
}

Result<Array> Array::zeros(DType dtype, Shape shape) {
  CAIRN_TRY_ASSIGN(const std::uint64_t size, dense_nbytes(dtype, shape));
  CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::zeros(size));
  return wrap(dtype, std::move(shape), std::move(bytes));
}

Result<Array> Array::wrap(DType dtype, Shape shape, Buffer bytes) {
  CAIRN_TRY_ASSIGN(const std::uint64_t size, dense_nbytes(dtype, shape));
  if (size != bytes.size()) {
    return Error(Code::kInvalidArgument, "array/size-mismatch",
                 fmt::format("{} of shape {} takes {} bytes, but there are {}", dtype_name(dtype),
                             to_string(shape), size, bytes.size()));
  }
  Array array;
  array.dtype_ = dtype;
  array.strides_ = dense_strides(shape, item_size(dtype));
  array.shape_ = std::move(shape);
  array.buffer_ = std::move(bytes);
  return array;
}

Result<Array> Array::wrap_strided(DType dtype, Shape shape, Strides strides, Buffer bytes,
                                  std::size_t offset) {
  CAIRN_TRY_ASSIGN(const std::uint64_t size, dense_nbytes(dtype, shape));
  const auto refuse = [&](std::string_view what) {
    return Error(Code::kInvalidArgument, "array/out-of-bounds",
                 fmt::format("{} of shape {} {}", dtype_name(dtype), to_string(shape), what));
  };
  if (strides.size() != shape.size()) {
    return refuse(fmt::format("has {} strides", strides.size()));
  }
  const auto extent = size == 0 ? Extent{} : extent_of(shape, strides, item_size(dtype));
  if (!extent || !inside(*extent, offset, bytes.size())) {
    return refuse(fmt::format("reaches outside its buffer of {} bytes", bytes.size()));
  }
  Array array;
  array.dtype_ = dtype;
  array.shape_ = std::move(shape);
  array.strides_ = std::move(strides);
  array.buffer_ = std::move(bytes);
  array.offset_ = offset;
  return array;
}

std::uint64_t Array::elements() const { return Box::whole(shape_).elements(); }
std::uint64_t Array::nbytes() const { return elements() * item_size(dtype_); }

bool Array::dense() const {
  if (elements() == 0) return true;
  const Strides wanted = dense_strides(shape_, item_size(dtype_));
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] != 1 && strides_[i] != wanted[i]) return false;
  }
  return true;
}

Array Array::slice(const Box& box) const {
  Array part = *this;
  part.shape_ = box.shape();
  if (box.empty()) return part;
  part.offset_ = static_cast<std::size_t>(static_cast<std::int64_t>(offset_) +
                                          byte_offset(box.begin, strides_));
  return part;
}

Result<Array> Array::to_dense() const {
  if (dense()) return *this;
  CAIRN_TRY_ASSIGN(Array copy, allocate(dtype_, shape_));
  CAIRN_TRY(copy_array(*this, copy));
  return copy;
}

Result<Array> Array::reshaped(Shape shape) const {
  CAIRN_TRY_ASSIGN(const std::uint64_t size, dense_nbytes(dtype_, shape));
  if (size != nbytes()) {
    return Error(Code::kInvalidArgument, "array/size-mismatch",
                 fmt::format("shape {} cannot become {}: the element counts differ",
                             to_string(shape_), to_string(shape)));
  }
  if (!dense()) {
    return Error(Code::kInvalidArgument, "array/not-dense",
                 fmt::format("an array of shape {} is not dense; make it so with to_dense() before "
                             "it is reshaped",
                             to_string(shape_)));
  }
  Array other = *this;
  other.strides_ = dense_strides(shape, item_size(dtype_));
  other.shape_ = std::move(shape);
  return other;
}

Result<void> copy_array(const Array& from, Array& to) {
  if (from.dtype() != to.dtype()) {
    return Error(Code::kInvalidArgument, "array/dtype-mismatch",
                 fmt::format("cannot copy {} into {}; cast it first", dtype_name(from.dtype()),
                             dtype_name(to.dtype())));
  }
  if (from.shape() != to.shape()) {
    return Error(Code::kInvalidArgument, "array/shape-mismatch",
                 fmt::format("cannot copy an array of shape {} into one of shape {}",
                             to_string(from.shape()), to_string(to.shape())));
  }
  copy_strided(from.shape(), item_size(from.dtype()), {from.data(), &from.strides()},
               {to.mutable_data(), &to.strides()});
  return {};
}

}  // namespace cairn
