// SPDX-License-Identifier: Apache-2.0
// Whatever .zarray is accepted can be written and is then the same array, and its grid can be
// walked without overflow.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/format/expansion.h"
#include "cairn/format/zarr2/metadata.h"

namespace {

using cairn::format::StoredArray;

bool same(const StoredArray& a, const StoredArray& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.chunk_shape == b.chunk_shape &&
         a.fortran_order == b.fortran_order && a.big_endian == b.big_endian && a.fill == b.fill &&
         a.separator == b.separator;
}

void walk(const StoredArray& array) {
  const cairn::Box whole = cairn::Box::whole(array.shape);
  const std::uint64_t count = array.chunk_count();
  for (const std::uint64_t n : {std::uint64_t{0}, count / 2, count - 1}) {
    if (n >= count) continue;
    if (!whole.contains(array.chunk_box(n)) || array.chunk_key(n).empty()) __builtin_trap();
  }
  if (array.chunk_strides().size() != array.shape.size()) __builtin_trap();
  const bool full_size_fits = check_expansion(array, array.chunk_bytes()).has_value();
  if (array.codec.is_raw() && !full_size_fits) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto array = cairn::format::zarr2::parse_metadata(text);
  if (!array) {
    if (!array.error().reason().starts_with("zarr2/")) __builtin_trap();
    return 0;
  }
  walk(*array);
  const auto written = cairn::format::zarr2::dump_metadata(*array);
  if (!written) __builtin_trap();
  const auto again = cairn::format::zarr2::parse_metadata(*written);
  if (!again || !same(*array, *again)) __builtin_trap();
  if (*cairn::format::zarr2::dump_metadata(*again) != *written) __builtin_trap();
  return 0;
}
