// SPDX-License-Identifier: Apache-2.0
// Two bytes say how much data follows the header, the rest is its JSON. Whatever header is accepted
// covers its data without holes, and comes back from what it is written as.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "cairn/format/safetensors/header.h"
#include "cairn/format/safetensors/header_parser.h"

namespace {

using namespace cairn::format::safetensors;

void check_coverage(const Header& header) {
  std::uint64_t position = 0;
  for (const Tensor& tensor : header.tensors) {
    if (tensor.begin != position || tensor.end < tensor.begin) __builtin_trap();
    position = tensor.end;
    const auto array = header.stored_array(tensor, "k");
    const std::uint64_t bytes = array.chunk_count() == 0 ? 0 : array.chunk_bytes();
    if (bytes != tensor.end - tensor.begin) __builtin_trap();
    if (array.chunk_strides().size() != tensor.shape.size()) __builtin_trap();
  }
  if (position != header.data_bytes) __builtin_trap();
}

bool same_but_for_offsets(std::vector<Tensor> a, std::vector<Tensor> b) {
  std::ranges::sort(a, {}, &Tensor::name);
  std::ranges::sort(b, {}, &Tensor::name);
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return std::tie(x.name, x.dtype, x.shape) == std::tie(y.name, y.dtype, y.shape);
  });
}

void write_and_read(const Header& header) {
  std::vector<Tensor> tensors = header.tensors;
  const auto text = make_header(tensors, header.metadata);
  if (!text || text->size() % kDataAlignment != 0) __builtin_trap();
  const std::string_view json = std::string_view(*text).substr(kLengthBytes);
  const auto again = parse_header(json, text->size() + header.data_bytes);
  if (!again || again->metadata != header.metadata) __builtin_trap();
  if (!same_but_for_offsets(again->tensors, header.tensors)) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto length = parse_header_length(cairn::as_bytes(input), size);
  if (length && *length > size - kLengthBytes) __builtin_trap();
  if (size < 2) return 0;
  const std::string_view json = input.substr(2);
  const std::uint64_t data_bytes = data[0] + std::uint64_t{256} * data[1];
  const auto header = parse_header(json, kLengthBytes + json.size() + data_bytes);
  if (!header) {
    if (!header.error().reason().starts_with("safetensors/")) __builtin_trap();
    return 0;
  }
  check_coverage(*header);
  write_and_read(*header);
  return 0;
}
