// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/partition_rules.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/sharding/refuse.h"
#include "cairn/sharding/regex.h"

namespace cairn {
namespace {

std::string place_of(std::size_t number, const std::string& pattern) {
  return fmt::format("partition rule {} '{}'", number, pattern);
}

Result<PartitionRule> read_rule(std::size_t number, const Json& json) {
  const Json::Array* pair = json.array();
  if (pair == nullptr || pair->size() != 2 || pair->front().text() == nullptr) {
    return refuse(
        "rules/not-a-pair",
        fmt::format("partition rule {} is not a pair of an expression and a list of axes, "
                    "such as [\"kernel$\", [\"fsdp\", null]]",
                    number));
  }
  const std::string& pattern = *pair->front().text();
  CAIRN_TRY_ASSIGN(PartitionSpec spec, PartitionSpec::from_json(pair->back()).in([&] {
    return place_of(number, pattern);
  }));
  return PartitionRule{pattern, std::move(spec)};
}

struct CompiledRule {
  const PartitionRule* rule;
  Regex regex;
};

class Matcher {
 public:
  Matcher(const std::vector<CompiledRule>& rules, const RuleOptions& options)
      : rules_(rules), options_(options) {}

  Result<PartitionSpec> spec_of(const RuleLeaf& leaf) {
    if (!options_.strict) {
      CAIRN_TRY_ASSIGN(const PartitionSpec* spec, first_found(leaf.key));
      return *spec;
    }
    if (leaf.shape == nullptr || leaf.shape->empty()) return PartitionSpec();
    CAIRN_TRY_ASSIGN(const std::uint64_t elements, element_count(*leaf.shape));
    CAIRN_TRY_ASSIGN(const PartitionSpec* spec, first_found(leaf.key));
    return elements < options_.min_size ? PartitionSpec() : spec->trimmed(leaf.shape->size());
  }

 private:
  Result<const PartitionSpec*> first_found(std::string_view key) {
    CAIRN_TRY(search_.in(key).in([&] { return fmt::format("key path '{}'", key); }));
    for (const CompiledRule& compiled : rules_) {
      CAIRN_TRY_ASSIGN(const bool found, search_.finds(compiled.regex).in([&] {
        const auto number = static_cast<std::size_t>(&compiled - rules_.data());
        return fmt::format("{} on '{}'", place_of(number, compiled.rule->pattern), key);
      }));
      if (found) return &compiled.rule->spec;
    }
    return refuse(
        "rules/no-match",
        fmt::format("no partition rule matches '{}'; add one, such as [\".*\", []] at the "
                    "end for all others",
                    key));
  }

  const std::vector<CompiledRule>& rules_;
  const RuleOptions& options_;
  RegexSearch search_;
};

}  // namespace

struct PartitionRules::State {
  std::vector<PartitionRule> rules;
  std::vector<CompiledRule> compiled;  // points into rules
};

Result<PartitionRules> PartitionRules::make(std::vector<PartitionRule> rules) {
  if (rules.size() > kMaxRules) {
    return refuse("rules/too-many", fmt::format("there are {} partition rules; at most {} are "
                                                "possible",
                                                rules.size(), kMaxRules));
  }
  auto state = std::make_shared<State>();
  state->rules = std::move(rules);
  for (const PartitionRule& rule : state->rules) {
    CAIRN_TRY_ASSIGN(Regex regex, Regex::compile(rule.pattern).in([&] {
      return place_of(state->compiled.size(), rule.pattern);
    }));
    state->compiled.push_back({&rule, std::move(regex)});
  }
  return PartitionRules(std::move(state));
}

const std::vector<PartitionRule>& PartitionRules::rules() const { return state_->rules; }

Result<PartitionRules> PartitionRules::parse(std::string_view json) {
  const auto parsed = parse_json(json, {.bytes = kMaxFileBytes, .depth = 8});
  if (!parsed) return refuse("rules/json", "partition rules: " + parsed.error().to_string());
  if (parsed->array() == nullptr) {
    return refuse("rules/not-a-list",
                  fmt::format("partition rules are a list of pairs, not {}", parsed->kind_name()));
  }
  std::vector<PartitionRule> rules;
  for (const Json& item : *parsed->array()) {
    CAIRN_TRY_ASSIGN(PartitionRule rule, read_rule(rules.size(), item));
    rules.push_back(std::move(rule));
    if (rules.size() > kMaxRules) break;
  }
  return make(std::move(rules));
}

Result<std::vector<PartitionSpec>> match_partition_rules(const PartitionRules& rules,
                                                         std::span<const RuleLeaf> leaves,
                                                         const RuleOptions& options) {
  Matcher matcher(rules.state_->compiled, options);
  std::vector<PartitionSpec> specs;
  specs.reserve(leaves.size());
  for (const RuleLeaf& leaf : leaves) {
    CAIRN_TRY_ASSIGN(PartitionSpec spec, matcher.spec_of(leaf));
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace cairn
