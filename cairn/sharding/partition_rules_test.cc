// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/partition_rules.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::string_view kRules =
    R"([["q_proj/kernel$", ["fsdp", "tp"]], ["kernel", ["tp", null, ["dp", "fsdp"]]],
        ["bias", []]])";

template <typename T>
std::string outcome(const Result<T>& result) {
  return result ? "ok" : std::string(result.error().reason());
}

/// The spec as text, or the reason.
std::string spec_of(std::string_view key, const Shape* shape, const RuleOptions& options = {}) {
  const RuleLeaf leaf{key, shape};
  const auto specs = match_partition_rules(*PartitionRules::parse(kRules), {&leaf, 1}, options);
  return specs ? specs->front().to_string() : std::string(specs.error().reason());
}

TEST(PartitionRules, FirstRuleThatIsFoundWins) {
  const Shape cube = {8, 8, 8};
  EXPECT_EQ(spec_of("a/q_proj/kernel", &cube), "P('fsdp', 'tp')");
  EXPECT_EQ(spec_of("a/q_proj/kernel_2", &cube), "P('tp', None, ('dp', 'fsdp'))");
  EXPECT_EQ(spec_of("bias", &cube), "P()");
  EXPECT_EQ(spec_of("a/scale", &cube), "rules/no-match");
}

TEST(PartitionRules, StrictTrimsAndSparesWhatIsSmall) {
  const Shape scalar;
  const Shape row = {8};
  const Shape square = {8, 8};
  EXPECT_EQ(spec_of("kernel", &square), "P('tp', None)");
  EXPECT_EQ(spec_of("kernel", &row), "P('tp')");
  EXPECT_EQ(spec_of("kernel", &scalar), "P()");
  EXPECT_EQ(spec_of("scale", &scalar), "P()");
  EXPECT_EQ(spec_of("scale", nullptr), "P()");
  EXPECT_EQ(spec_of("kernel", &row, {.min_size = 9}), "P()");
  EXPECT_EQ(spec_of("kernel", &row, {.min_size = 8}), "P('tp')");
  EXPECT_EQ(spec_of("scale", &row, {.min_size = 9}), "rules/no-match");
}

TEST(PartitionRules, OtherwiseRulesAreFollowedToTheLetter) {
  const Shape scalar;
  const RuleOptions loose{.min_size = 1000, .strict = false};
  EXPECT_EQ(spec_of("kernel", &scalar, loose), "P('tp', None, ('dp', 'fsdp'))");
  EXPECT_EQ(spec_of("kernel", nullptr, loose), "P('tp', None, ('dp', 'fsdp'))");
  EXPECT_EQ(spec_of("scale", &scalar, loose), "rules/no-match");
}

TEST(PartitionRules, KeepTheOrderOfLeaves) {
  const Shape shape = {2};
  const std::vector<RuleLeaf> leaves = {{"z/bias", &shape}, {"a/kernel", &shape}};
  const auto specs = match_partition_rules(*PartitionRules::parse(kRules), leaves);
  ASSERT_TRUE(specs);
  EXPECT_EQ(*specs, (std::vector<PartitionSpec>{{}, PartitionSpec{PartitionSpec::Entry{"tp"}}}));
}

TEST(PartitionRules, NameTheRuleAndTheKeyOfAnEndlessSearch) {
  const auto rules = PartitionRules::make({{"x", {}}, {"(a+)+$", {}}});
  const std::string key = std::string(60, 'a') + "b";
  const Shape shape = {1};
  const RuleLeaf leaf{key, &shape};
  const auto specs = match_partition_rules(*rules, {&leaf, 1});
  ASSERT_EQ(outcome(specs), "regex/limit");
  EXPECT_EQ(specs.error().where(), "partition rule 1 '(a+)+$' on '" + key + "'");
}

TEST(PartitionRules, NameTheRuleOfABadExpression) {
  const auto rules = PartitionRules::parse(R"([["a", []], ["b[", []]])");
  ASSERT_EQ(outcome(rules), "regex/syntax");
  EXPECT_EQ(rules.error().to_string(),
            "partition rule 1 'b[': unterminated character set at position 1");
}

TEST(PartitionRules, RefuseFilesThatAreNoLists) {
  const auto parse = [](std::string_view text) { return outcome(PartitionRules::parse(text)); };
  EXPECT_EQ(parse("[]"), "ok");
  EXPECT_EQ(parse(kRules), "ok");
  EXPECT_EQ(parse("[[\"a\", []]"), "rules/json");
  EXPECT_EQ(parse("[[\"\xff\", []]]"), "rules/json");
  EXPECT_EQ(parse(std::string(100, '[') + std::string(100, ']')), "rules/json");
  EXPECT_EQ(parse("{\"a\": []}"), "rules/not-a-list");
  EXPECT_EQ(parse("[\"a\"]"), "rules/not-a-pair");
  EXPECT_EQ(parse("[[\"a\"]]"), "rules/not-a-pair");
  EXPECT_EQ(parse("[[\"a\", [], []]]"), "rules/not-a-pair");
  EXPECT_EQ(parse("[[1, []]]"), "rules/not-a-pair");
  EXPECT_EQ(parse("[[\"a\", \"b\"]]"), "spec/not-a-list");
  EXPECT_EQ(parse("[[\"a\", [1]]]"), "spec/bad-entry");
  EXPECT_EQ(parse("[\"" + std::string(PartitionRules::kMaxFileBytes, ' ') + "\"]"), "rules/json");
}

TEST(PartitionRules, AreNotMoreThanTheLimit) {
  std::vector<PartitionRule> rules(PartitionRules::kMaxRules, {"a", {}});
  EXPECT_EQ(outcome(PartitionRules::make(rules)), "ok");
  rules.push_back({"a", {}});
  EXPECT_EQ(outcome(PartitionRules::make(rules)), "rules/too-many");
  std::string text = "[[\"a\",[]]";
  for (std::size_t i = 0; i < PartitionRules::kMaxRules; ++i) text += ",[\"a\",[]]";
  EXPECT_EQ(outcome(PartitionRules::parse(text + "]")), "rules/too-many");
}

}  // namespace
}  // namespace cairn
