// SPDX-License-Identifier: Apache-2.0
// Whatever text parses comes back equal from what it is written as, in every style and with every
// rule about repeated members.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cairn/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto repeated :
       {cairn::Repeated::kLastWins, cairn::Repeated::kRefuse, cairn::Repeated::kKeep}) {
    const auto first = cairn::parse_json(text, {.repeated = repeated});
    if (!first) continue;
    for (const cairn::JsonStyle style : {cairn::JsonStyle{}, cairn::JsonStyle{.ascii = true},
                                         cairn::JsonStyle{.indent = 2, .python_spaces = true}}) {
      const std::string written = cairn::dump_json(*first, style);
      const auto second = cairn::parse_json(written, {.repeated = repeated});
      if (!second || !(*second == *first)) __builtin_trap();
    }
  }
  return 0;
}
