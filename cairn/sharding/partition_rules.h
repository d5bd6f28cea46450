// SPDX-License-Identifier: Apache-2.0
// Partition specs by rules: which leaf is split how, by what its key path looks like.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/array/shape.h"
#include "cairn/sharding/partition_spec.h"
#include "cairn/sharding/regex.h"

namespace cairn::inline sharding {

struct PartitionRule {
  std::string pattern;  ///< in the syntax of Python's `re`
  PartitionSpec spec;
};

/// Rules in order, all of them compiled. Immutable. Threading: safe.
class PartitionRules {
 public:
  static constexpr std::size_t kMaxRules = 1024;
  static constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;

  /// `invalid_argument`: rules/too-many, and what Regex::compile says of a rule, with its number
  /// (from 0).
  static Result<PartitionRules> make(std::vector<PartitionRule> rules);
  /// `[["regex", ["fsdp", null, ["dp", "tp"]]], ...]`. `invalid_argument` also for rules/json,
  /// rules/not-a-list, rules/not-a-pair and what PartitionSpec::from_json says.
  static Result<PartitionRules> parse(std::string_view json);

  const std::vector<PartitionRule>& rules() const { return rules_; }
  const std::vector<Regex>& expressions() const { return expressions_; }

 private:
  PartitionRules() = default;
  std::vector<PartitionRule> rules_;
  std::vector<Regex> expressions_;
};

/// A leaf as rules see it.
struct RuleLeaf {
  std::string_view key;          ///< parts of its key path joined with '/', nothing encoded
  const Shape* shape = nullptr;  ///< null for what is no array
};

struct RuleOptions {
  /// Leaves with fewer elements get the empty spec, if a rule matches at all. Only where strict.
  std::uint64_t min_size = 0;
  /// Scalars and what is no array get the empty spec without asking the rules, and a spec with more
  /// entries than the leaf has dimensions is trimmed. Otherwise rules are followed to the letter.
  bool strict = true;
};

/// For each leaf, in order, the spec of the first rule that is found anywhere in its key.
/// `invalid_argument`: rules/no-match (with the key), regex/limit and regex/utf8 (with rule and
/// key), shape/*.
Result<std::vector<PartitionSpec>> match_partition_rules(const PartitionRules& rules,
                                                         std::span<const RuleLeaf> leaves,
                                                         const RuleOptions& options = {});

}  // namespace cairn::inline sharding
