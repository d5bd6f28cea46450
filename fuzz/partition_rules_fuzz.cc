// SPDX-License-Identifier: Apache-2.0
// Rules that parse come back equal from what they are written as, and every search with them ends.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cairn/sharding/partition_rules.h"

namespace {

cairn::Json to_json(const cairn::PartitionRules& rules) {
  cairn::Json::Array pairs;
  for (const cairn::PartitionRule& rule : rules.rules()) {
    pairs.push_back(cairn::Json::Array{rule.pattern, rule.spec.to_json()});
  }
  return pairs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = cairn::PartitionRules::parse(text);
  if (!rules) return 0;
  const cairn::Json written = to_json(*rules);
  const auto again = cairn::PartitionRules::parse(cairn::dump_json(written));
  if (!again || !(to_json(*again) == written)) __builtin_trap();

  const cairn::Shape shape = {8, 8};
  for (const std::string_view key : {"", "params/layers/0/kernel", "aaaaaaaaab\n"}) {
    const cairn::RuleLeaf leaf{key, &shape};
    const auto specs = cairn::match_partition_rules(*rules, {&leaf, 1});
    if (specs && specs->front().size() > shape.size()) __builtin_trap();
  }
  return 0;
}
