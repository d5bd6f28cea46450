// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/store.h"

#include <fmt/format.h>

#include "cairn/base/human.h"

namespace cairn::storage {

Result<std::unique_ptr<ObjectWriter>> Store::create_shared(std::string_view key, std::uint64_t) {
  return Error(Code::kUnimplemented, "storage/no-shared-write",
               "this store does not let several processes write one object")
      .in(describe(key));
}

Result<Buffer> read_all(Store& store, std::string_view key, std::uint64_t limit) {
  CAIRN_TRY_ASSIGN(auto reader, store.open(key));
  if (reader->size() > limit) {
    return Error(Code::kResourceExhausted, "storage/too-large",
                 fmt::format("it has {}, more than the limit of {}", format_bytes(reader->size()),
                             format_bytes(limit)))
        .in(store.describe(key));
  }
  CAIRN_TRY_ASSIGN(auto bytes, Buffer::allocate(static_cast<std::size_t>(reader->size())));
  CAIRN_TRY(reader->read_at(0, bytes.mutable_bytes()));
  return bytes;
}

}  // namespace cairn::storage
