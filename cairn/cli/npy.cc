// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/npy.h"

#include <fmt/format.h>

namespace cairn::cli {

namespace {

std::string descr(DType dtype) {
  const std::size_t size = item_size(dtype);
  const char order = size == 1 ? '|' : '<';
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return fmt::format("{}i{}", order, size);
    case DType::kUint8:
    case DType::kUint16:
    case DType::kUint32:
    case DType::kUint64:
      return fmt::format("{}u{}", order, size);
    case DType::kFloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return fmt::format("<f{}", size);
    case DType::kComplex64:
    case DType::kComplex128:
      return fmt::format("<c{}", size);
    default:
      return fmt::format("{}V{}", order, size);
  }
}

}  // namespace

std::string npy_header(DType dtype, const Shape& shape) {
  std::string dims;
  for (const Index size : shape) dims += fmt::format("{}, ", size);
  if (shape.size() > 1) dims.erase(dims.size() - 2);
  if (shape.size() == 1) dims.pop_back();
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(dtype), dims);
  // Magic, version and length come first; spaces and a newline bring the data to a multiple of 64.
  const bool is_long = text.size() + 75 > 0xffff;
  const std::size_t before = is_long ? 12 : 10;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY", 6);
  header += is_long ? std::string("\x02\x00", 2) : std::string("\x01\x00", 2);
  for (std::size_t i = 0; i < (is_long ? 4 : 2); ++i)
    header += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return header + text;
}

}  // namespace cairn::cli
