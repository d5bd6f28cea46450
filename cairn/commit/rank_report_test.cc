// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/rank_report.h"

#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn {
namespace {

using testing::must;

TEST(RankReport, ComesBackAsItWas) {
  RankReport report;
  report.rank = 7;
  report.sums = {
      {.ranges = {{.array = 1, .crc = 0xdeadbeef, .chunk = 2, .begin = 0, .end = kBlockBytes},
                  {.array = 3, .crc = 1, .begin = kBlockBytes + 5, .end = kBlockBytes + 9}},
       .hashes = {{.array = 3, .begin = 5, .end = 6, .sha256 = {std::byte{7}, std::byte{8}}}}},
      {}};
  const auto back = must(parse_rank_report(must(dump_rank_report(report))));
  EXPECT_EQ(back.rank, 7);
  EXPECT_FALSE(back.failure);
  EXPECT_EQ(back.sums, report.sums);
}

TEST(RankReport, AFailureKeepsCodeAndWords) {
  RankReport report;
  report.failure = Error(Code::kResourceExhausted, "storage/no-space", "full").in("leaf w");
  auto back = must(parse_rank_report(must(dump_rank_report(report))));
  EXPECT_EQ(back.failure->code(), Code::kResourceExhausted);
  EXPECT_EQ(back.failure->reason(), "storage/no-space");
  EXPECT_EQ(back.failure->to_string(), "leaf w: full");
  report.failure = Error(Code::kNotFound, "load/key-missing", "no leaf");
  back = must(parse_rank_report(must(dump_rank_report(report))));
  EXPECT_EQ(back.failure->reason(), "load/key-missing");
  report.failure = Error(Code::kCorrupt, "some/token", "odd");
  back = must(parse_rank_report(must(dump_rank_report(report))));
  EXPECT_EQ(back.failure->reason(), "ranks/failed");
  EXPECT_EQ(back.failure->to_string(), "odd [some/token]");
}

TEST(RankReport, DamageIsRefused) {
  RankReport report;
  report.sums = {{.ranges = {{.array = 1, .crc = 2, .chunk = 3, .begin = 4, .end = 5}},
                  .hashes = {{.array = 1, .begin = 7, .end = 8}}}};
  const std::string good = must(dump_rank_report(report));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text : {
           std::string("{"),
           std::string("[]"),
           with("\"rank\":0", "\"rank\":-1"),
           with("\"rank\":0", "\"rank\":99999999999"),
           with("\"count\":1", "\"count\":2"),
           with("\"count\":1", "\"count\":9223372036854775807"),
           with("\"failure\":null", "\"failure\":{}"),
           with("\"failure\":null",
                "\"failure\":{\"code\":\"odd\",\"reason\":\"\",\"message\":\"\"}"),
           with("\"begin\":\"BA", "\"begin\":\"BQ"),  // begins where it ends
           with("\"crc\":\"AgAAAA==\"", "\"crc\":\"AgAAA\""),
           with("\"hashes\"", "\"hash\""),
           with("\"sha256\":\"AA", "\"sha256\":\""),
       }) {
    const auto parsed = parse_rank_report(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().reason(), "ranks/bad-report");
  }
}

}  // namespace
}  // namespace cairn
