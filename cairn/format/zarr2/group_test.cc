// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/zarr2/group.h"

#include <gmock/gmock.h>

#include "cairn/testing/must.h"

namespace cairn::format::zarr2 {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Groups, EachDirectoryAboveAnArrayIsNamedOnce) {
  Groups groups;
  EXPECT_THAT(groups.above("a/b/c"), ElementsAre("a/b", "a", ""));
  EXPECT_THAT(groups.above("a/b/d"), IsEmpty());
  EXPECT_THAT(groups.above("a/e/f"), ElementsAre("a/e"));
  EXPECT_THAT(groups.above("g"), IsEmpty());
}

TEST(Groups, AnArrayThatIsTheTreeLiesInNone) {
  EXPECT_THAT(Groups().above(""), IsEmpty());
  EXPECT_THAT(Groups().above("a"), ElementsAre(""));
}

TEST(Groups, WhatIsWrittenIsAGroup) {
  EXPECT_TRUE(check_group(kGroupMetadata));
  EXPECT_TRUE(check_group("{\n    \"zarr_format\": 2\n}"));
  for (const char* text : {"", "{", "[2]", "{}", R"({"zarr_format":3})", R"({"zarr_format":"2"})"})
    EXPECT_EQ(cairn::testing::reason(check_group(text)), "zarr2/group") << text;
}

}  // namespace
}  // namespace cairn::format::zarr2
