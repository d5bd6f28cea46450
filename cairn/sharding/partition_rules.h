// SPDX-License-Identifier: Apache-2.0
// Partition specs by rules: the key path of a leaf decides how it is split.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/array/shape.h"
#include "cairn/sharding/partition_spec.h"

namespace cairn {

struct PartitionRule {
  std::string pattern;  ///< in the syntax of Python's `re`
  PartitionSpec spec;
};

/// A leaf as rules see it.
struct RuleLeaf {
  std::string_view key;          ///< parts of its key path joined with '/', nothing encoded
  const Shape* shape = nullptr;  ///< null for what is no array
};

struct RuleOptions {
  /// Leaves with fewer elements get the empty spec, if any rule matches. Only in strict mode.
  std::uint64_t min_size = 0;
  /// Scalars and values that are not arrays get the empty spec without a rule, and a spec with more
  /// entries than the leaf has dimensions is trimmed. false: rules apply literally.
  bool strict = true;
};

/// Rules in order, all of them compiled. Immutable; copies share them. Threading: safe.
class PartitionRules {
 public:
  static constexpr std::size_t kMaxRules = 1024;
  static constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;

  /// `invalid_argument`, with the number of the rule (from 0): regex/syntax (Python refuses the
  /// expression too), regex/unsupported (only we do), regex/too-long, regex/utf8; rules/too-many.
  static Result<PartitionRules> make(std::vector<PartitionRule> rules);
  /// `[["regex", ["fsdp", null, ["dp", "tp"]]], ...]`. `invalid_argument` also for rules/json,
  /// rules/not-a-list, rules/not-a-pair and what PartitionSpec::from_json says.
  static Result<PartitionRules> parse(std::string_view json);

  const std::vector<PartitionRule>& rules() const;

 private:
  friend Result<std::vector<PartitionSpec>> match_partition_rules(const PartitionRules&,
                                                                  std::span<const RuleLeaf>,
                                                                  const RuleOptions&);
  struct State;
  explicit PartitionRules(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// For each key, in the order of `leaves`, the spec of the first rule whose expression is found
/// anywhere in it. `invalid_argument`: rules/no-match (with the key), regex/limit (the search took
/// too long; with rule and key), regex/utf8, shape/*.
Result<std::vector<PartitionSpec>> match_partition_rules(const PartitionRules& rules,
                                                         std::span<const RuleLeaf> leaves,
                                                         const RuleOptions& options = {});

}  // namespace cairn
