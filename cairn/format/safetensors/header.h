// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file: 8 bytes of length, JSON, then the data. Written padded with
// spaces so that the data starts on a 4,096-byte boundary; `header_parser.h` reads it. See
// docs/format/safetensors.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/format/safetensors/dtype.h"
#include "cairn/format/stored_array.h"

namespace cairn::format::safetensors {

/// The library's own cap, 10^8.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
/// Most values in one (JsonLimits::values): 1.4 million tensors of rank 2, 0.8 GB of memory.
constexpr std::size_t kMaxHeaderValues = std::size_t{1} << 24;
constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kDataAlignment = 4096;

struct Tensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::uint64_t begin = 0;  ///< relative to the data
  std::uint64_t end = 0;

  bool operator==(const Tensor&) const = default;
};

/// Text to text: the only metadata of the format.
using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Threading: compatible.
struct Header {
  std::vector<Tensor> tensors;   ///< by offset, then name
  Metadata metadata;             ///< by key
  std::uint64_t data_start = 0;  ///< offset in the file of the first data byte
  std::uint64_t data_bytes = 0;

  /// A view of one tensor for reading or writing; `key` is the file's.
  StoredArray stored_array(const Tensor& tensor, std::string key) const;
};

/// Bytes of one tensor as stored (F4 and F6 packed). `invalid_argument`:
/// safetensors/dtype-unsupported, safetensors/misaligned, safetensors/shape-overflow, and
/// shape/negative, shape/rank, shape/overflow.
Result<std::uint64_t> tensor_bytes(DType dtype, const Shape& shape);

/// Assigns begin and end in the library's order (type, then name; see the document), sorts
/// `tensors` so, and returns length field and padded JSON. `invalid_argument`: those of
/// tensor_bytes(), safetensors/duplicate-name, safetensors/reserved-name, safetensors/name-utf8,
/// safetensors/duplicate-metadata-key, safetensors/header-too-large, safetensors/data-too-large.
Result<std::string> make_header(std::vector<Tensor>& tensors, const Metadata& metadata);

}  // namespace cairn::format::safetensors
