// SPDX-License-Identifier: Apache-2.0
// The small files of a run directory: the mark and checkpoint_metadata.json, which clients write,
// and the owner file.
#include <cstdlib>

#include "cairn/manifest/checkpoint_metadata.h"
#include "cairn/run/mark.h"
#include "cairn/run/ownership.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto mark = cairn::parse_mark(text)) {
    const std::string dumped = cairn::dump_mark(*mark);
    const auto again = cairn::parse_mark(dumped);
    if (!again || cairn::dump_mark(*again) != dumped) std::abort();
    if (again->step != mark->step || again->is_temporary != mark->is_temporary) std::abort();
  }
  if (const auto owner = cairn::parse_owner_file(text)) {
    const auto again = cairn::parse_owner_file(cairn::dump_owner_file(*owner));
    if (!again || *again != *owner) std::abort();
  }
  if (const auto metadata = cairn::parse_checkpoint_metadata(text)) {
    const std::string dumped = cairn::dump_checkpoint_metadata(*metadata);
    const auto again = cairn::parse_checkpoint_metadata(dumped);
    if (!again) std::abort();
    if (!metadata->timestamp.empty() && cairn::dump_checkpoint_metadata(*again) != dumped)
      std::abort();
  }
  return 0;
}
