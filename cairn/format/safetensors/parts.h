// SPDX-License-Identifier: Apache-2.0
// How tensors are grouped into parts. Pure; the same groups as the reference system makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace cairn::format::safetensors {

/// The reference's largest part, 5 GiB.
constexpr std::uint64_t kDefaultPartBytes = std::uint64_t{5} << 30;

struct NamedSize {
  std::string_view name;
  std::uint64_t bytes = 0;
};

/// Groups of positions in the given list; no group is empty.
using PartGroups = std::vector<std::vector<std::size_t>>;

/// Greedy, in order: a part ends when the next tensor would make it larger than `max_bytes`. A
/// tensor above that gets a part of its own.
PartGroups group_keys_by_shard_size(std::span<const NamedSize> tensors, std::uint64_t max_bytes);

/// Keeps siblings (names that differ after the last '.') in one part if they fit, sorted by the
/// common part of their names; larger groups are split as above.
PartGroups optimize_shard_layout(std::span<const NamedSize> tensors, std::uint64_t max_bytes);

}  // namespace cairn::format::safetensors
