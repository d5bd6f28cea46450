// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cairn/cairn.h"

int main() {
  // Eight devices of two processes; rank 0 has devices 0 to 3.
  const auto mesh = cairn::Mesh::over_ranks({{"dp", 2}, {"tp", 4}}, 2);
  const auto rules = cairn::PartitionRules::parse(R"([
      ["(q|k|v)_proj/kernel$", [null, "tp"]],
      ["embedding",            [["dp", "tp"], null]],
      [".*",                   []]
  ])");
  if (!mesh || !rules) return 1;

  const cairn::Shape kernel = {512, 1024};
  const cairn::Shape table = {32000, 512};
  const cairn::Shape scale = {512};
  const cairn::RuleLeaf leaves[] = {
      {"layers/0/q_proj/kernel", &kernel}, {"embedding", &table}, {"norm/scale", &scale}};
  const auto specs = cairn::match_partition_rules(*rules, leaves);
  if (!specs) return 1;

  for (std::size_t i = 0; i < specs->size(); ++i) {
    const auto named = cairn::NamedSharding::make(*mesh, (*specs)[i]);
    if (!named || !named->check(*leaves[i].shape)) return 1;
    const auto held = cairn::Sharding(*named).holdings(*leaves[i].shape, 0);
    std::printf("%s: %s, %zu here, the first %s on %zu ranks\n", leaves[i].key.data(),
                named->spec().to_string().c_str(), held.size(),
                held.front().box.to_string().c_str(), held.front().ranks->size());
  }
}
