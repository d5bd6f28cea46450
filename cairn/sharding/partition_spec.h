// SPDX-License-Identifier: Apache-2.0
// `PartitionSpec`: over which axes of a mesh each dimension of an array is split.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "cairn/base/json.h"

namespace cairn {

/// One entry a dimension; dimensions without an entry are not split. Threading: compatible.
class PartitionSpec {
 public:
  /// Axes of one dimension, the slowest first; none: not split.
  using Entry = std::vector<std::string>;

  PartitionSpec() = default;
  /// `PartitionSpec{{"fsdp"}, {}, {"dp", "tp"}}` is JAX's P('fsdp', None, ('dp', 'tp')).
  PartitionSpec(std::initializer_list<Entry> entries) : entries_(entries) {}
  explicit PartitionSpec(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  /// `["fsdp", null, ["dp", "tp"]]`. `invalid_argument`: spec/not-a-list, spec/bad-entry,
  /// spec/too-long (more entries, or more axes in one, than any array or mesh has).
  static Result<PartitionSpec> from_json(const Json& json);
  Json to_json() const;

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  /// Without the entries beyond `rank` dimensions.
  PartitionSpec trimmed(std::size_t rank) const;

  /// "P('fsdp', None, ('dp', 'tp'))".
  std::string to_string() const;
  /// As in JAX, P('a') and P('a', None) differ.
  bool operator==(const PartitionSpec&) const = default;

 private:
  std::vector<Entry> entries_;
};

}  // namespace cairn
