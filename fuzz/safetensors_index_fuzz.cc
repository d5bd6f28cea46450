// SPDX-License-Identifier: Apache-2.0
// Whatever index is accepted names parts that stay in its folder, and comes back from what it is
// written as.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cairn/base/uri.h"
#include "cairn/format/safetensors/index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cairn::format::safetensors;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = parse_index(text);
  if (!index) {
    if (!index.error().reason().starts_with("safetensors-index/")) __builtin_trap();
    return 0;
  }
  for (const auto& part : index->parts()) {
    if (!cairn::is_safe_relative_path(part)) __builtin_trap();
  }
  const auto again = parse_index(dump_index(*index, 7));
  if (!again || again->weight_map != index->weight_map) __builtin_trap();
  return 0;
}
