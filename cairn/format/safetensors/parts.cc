// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/parts.h"

#include <limits>
#include <map>
#include <utility>

#include "cairn/base/checked.h"

namespace cairn::format::safetensors {
namespace {

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(std::numeric_limits<std::uint64_t>::max());
}

class Grouping {
 public:
  explicit Grouping(std::uint64_t max_bytes) : max_bytes_(max_bytes) {}

  // Tensors that stay together; they open a part of their own where they do not fit.
  void add(std::span<const std::size_t> positions, std::uint64_t bytes) {
    if (saturating_add(bytes_, bytes) > max_bytes_) close();
    current_.insert(current_.end(), positions.begin(), positions.end());
    bytes_ = saturating_add(bytes_, bytes);
  }

  void close() {
    if (!current_.empty()) groups_.push_back(std::exchange(current_, {}));
    bytes_ = 0;
  }

  PartGroups finish() && {
    close();
    return std::move(groups_);
  }

 private:
  std::uint64_t max_bytes_;
  std::uint64_t bytes_ = 0;
  std::vector<std::size_t> current_;
  PartGroups groups_;
};

// The reference files names without a '.' under "root", beside those that begin with "root.".
std::string_view siblings_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? "root" : name.substr(0, dot);
}

}  // namespace

PartGroups group_keys_by_shard_size(std::span<const NamedSize> tensors, std::uint64_t max_bytes) {
  Grouping grouping(max_bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) grouping.add({&i, 1}, tensors[i].bytes);
  return std::move(grouping).finish();
}

PartGroups optimize_shard_layout(std::span<const NamedSize> tensors, std::uint64_t max_bytes) {
  struct Siblings {
    std::vector<std::size_t> positions;
    std::uint64_t bytes = 0;
  };
  std::map<std::string_view, Siblings> families;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Siblings& family = families[siblings_of(tensors[i].name)];
    family.positions.push_back(i);
    family.bytes = saturating_add(family.bytes, tensors[i].bytes);
  }

  Grouping grouping(max_bytes);
  for (const auto& [name, family] : families) {
    if (family.bytes <= max_bytes) {
      grouping.add(family.positions, family.bytes);
      continue;
    }
    grouping.close();
    for (const std::size_t i : family.positions) grouping.add({&i, 1}, tensors[i].bytes);
  }
  return std::move(grouping).finish();
}

}  // namespace cairn::format::safetensors
