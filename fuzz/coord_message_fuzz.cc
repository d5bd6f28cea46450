// SPDX-License-Identifier: Apache-2.0
// Whatever bytes are a message come back equal from what it is written as.
#include <cstddef>
#include <cstdint>
#include <string>

#include "cairn/coord/wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using cairn::as_text;
  using cairn::coord::decode_message;
  const auto bytes = cairn::Buffer::own(std::string(reinterpret_cast<const char*>(data), size));
  const auto first = decode_message(bytes);
  if (!first) return 0;
  const auto written = cairn::coord::encode_message(*first);
  if (!written) return 0;
  const auto second = decode_message(*written);
  const bool same = second && second->call == first->call && second->phase == first->phase &&
                    second->operation == first->operation && second->outcome == first->outcome &&
                    second->text == first->text &&
                    as_text(second->payload.bytes()) == as_text(first->payload.bytes());
  if (!same) __builtin_trap();
  return 0;
}
