// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/partition_spec.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(PartitionSpec, IsTheSameAsTextAndJson) {
  struct Case {
    PartitionSpec spec;
    const char* text;
    const char* json;
  };
  const Case cases[] = {
      {{}, "P()", "[]"},
      {PartitionSpec(std::vector<PartitionSpec::Entry>(1)), "P(None)", "[null]"},
      {{{"fsdp"}, {}, {"dp", "tp"}},
       "P('fsdp', None, ('dp', 'tp'))",
       "[\"fsdp\",null,[\"dp\",\"tp\"]]"},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(test.spec.to_string(), test.text);
    EXPECT_EQ(dump_json(test.spec.to_json()), test.json);
    EXPECT_EQ(*PartitionSpec::from_json(*parse_json(test.json)), test.spec);
  }
}

TEST(PartitionSpec, TakesListsOfNoneAndOneAsJaxDoes) {
  EXPECT_EQ(*PartitionSpec::from_json(*parse_json("[[\"a\"], []]")),
            *PartitionSpec::from_json(*parse_json("[\"a\", null]")));
}

TEST(PartitionSpec, RefusesOtherJson) {
  const auto outcome = [](std::string_view text) {
    const auto spec = PartitionSpec::from_json(*parse_json(text));
    return spec ? "ok" : std::string(spec.error().reason());
  };
  EXPECT_EQ(outcome("\"a\""), "spec/not-a-list");
  EXPECT_EQ(outcome("null"), "spec/not-a-list");
  EXPECT_EQ(outcome("{}"), "spec/not-a-list");
  EXPECT_EQ(outcome("[1]"), "spec/bad-entry");
  EXPECT_EQ(outcome("[{}]"), "spec/bad-entry");
  EXPECT_EQ(outcome("[[\"a\", null]]"), "spec/bad-entry");
  EXPECT_EQ(outcome("[[[\"a\"]]]"), "spec/bad-entry");
  std::string many = "[null";
  for (int i = 1; i < 32; ++i) many += ",null";
  EXPECT_EQ(outcome(many + "]"), "ok");
  EXPECT_EQ(outcome(many + ",null]"), "spec/too-long");
  EXPECT_EQ(outcome("[" + many + "]]"), "spec/bad-entry");
  EXPECT_EQ(outcome("[" + many + ",null]]"), "spec/too-long");
}

TEST(PartitionSpec, IsTrimmedToTheRank) {
  const PartitionSpec spec{{"a"}, {}, {"b"}};
  EXPECT_EQ(spec.trimmed(1), (PartitionSpec{PartitionSpec::Entry{"a"}}));
  EXPECT_EQ(spec.trimmed(0), PartitionSpec());
  EXPECT_EQ(spec.trimmed(5), spec);
  EXPECT_NE(spec.trimmed(2), spec.trimmed(1));
}

}  // namespace
}  // namespace cairn
