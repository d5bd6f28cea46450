// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/lineage.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Lineage, GoesOnFromWhatItFollows) {
  const Lineage first{.number = 1};
  const Lineage second = first.next(2, 1);
  EXPECT_EQ(second.history, (decltype(second.history){{1, 1}}));
  const Lineage third = second.next(3, 2);
  EXPECT_EQ(third.history, (decltype(third.history){{1, 2}})) << "neighbours are one interval";
  EXPECT_TRUE(third.includes(1) && third.includes(2) && third.includes(3));
  EXPECT_FALSE(third.includes(4));
}

TEST(Lineage, LeavesOutWhatWasLeftBehind) {
  const Lineage tenth{.number = 10, .history = {{1, 9}}};
  const Lineage back = tenth.next(11, 5);
  EXPECT_EQ(back.history, (decltype(back.history){{1, 5}}));
  const Lineage on = back.next(12, 11);
  EXPECT_EQ(on.history, (decltype(on.history){{1, 5}, {11, 11}}));
  EXPECT_FALSE(on.includes(10));
  EXPECT_EQ(on.next(13, 11).history, on.history) << "12 is left out";
  EXPECT_EQ(on.next(13, 3).history, (decltype(on.history){{1, 3}}));
}

TEST(Lineage, ComesBackFromJson) {
  const Lineage lineage{.number = 12, .history = {{1, 5}, {11, 11}}, .name = "run-6"};
  const Json json = to_json(lineage);
  EXPECT_EQ(dump_json(json), R"({"name":"run-6","number":12,"history":[[1,5],[11,11]]})");
  EXPECT_EQ(parse_lineage(json), lineage);
}

TEST(Lineage, IsNoneWhereItMakesNoSense) {
  for (const char* const text :
       {"null", "7", "{}", R"({"name":"a","number":3})", R"({"name":1,"number":3,"history":[]})",
        R"({"name":"a","number":-3,"history":[]})",
        R"({"name":"a","number":18446744073709551615,"history":[]})",
        R"({"name":"a","number":3,"history":[[1]]})",
        R"({"name":"a","number":3,"history":[[2,1]]})",
        R"({"name":"a","number":3,"history":[[1,3]]})",
        R"({"name":"a","number":9,"history":[[4,5],[1,2]]})",
        R"({"name":"a","number":9,"history":[["1","2"]]})"}) {
    const auto json = parse_json(text);
    ASSERT_TRUE(json) << text;
    EXPECT_EQ(parse_lineage(*json), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cairn
