// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/record.h"

#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn {
namespace {

using testing::must;

Record sample() {
  Record record;
  record.writer = "cairn 0.1.0";
  record.run_id = "run";
  record.step = 7;
  record.generation = 3;
  record.prefixes = {{"model", "model/.cairn.json", 10, "aa", "id1", {"model"}},
                     {"", ".cairn-manifest.json", 11, "bb", "id2", {".cairn-manifest.json", "w"}}};
  record.committed = {"id1", "id2"};
  return record;
}

TEST(Record, ComesBackEqual) {
  const auto parsed = parse_record(must(dump_record(sample())));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(must(dump_record(*parsed)), must(dump_record(sample())));
  ASSERT_NE(parsed->find("model"), nullptr);
  EXPECT_EQ(parsed->find("model")->manifest_bytes, 10u);
  EXPECT_EQ(parsed->find("opt"), nullptr);
}

TEST(Record, IsNotWrittenWhereItCouldNotBeRead) {
  Record record = sample();
  record.prefixes.back().entries.assign(100, std::string(kMaxRecordBytes / 100, 'n'));
  EXPECT_EQ(testing::reason(dump_record(record)), "record/too-many-names");
}

TEST(Record, IgnoresMembersItDoesNotKnow) {
  std::string text = must(dump_record(sample()));
  text.insert(1, "\"later\": [1, 2],");
  EXPECT_TRUE(parse_record(text));
}

struct Damage {
  const char* name;
  const char* from;
  const char* to;
  const char* reason;
};

TEST(Record, RefusesDamageByName) {
  const Damage damages[] = {
      {"cut", "\"generation\"", "\"gener", "record/bad-json"},
      {"a generation that has no next", "\"generation\": 3", "\"generation\": 18446744073709551615",
       "record/bad-member"},
      {"no generation", "\"generation\": 3", "\"generation\": -3", "record/bad-member"},
      {"step is text", "\"step\": 7", "\"step\": \"7\"", "record/bad-member"},
      {"no writer", "\"writer\"", "\"writed\"", "record/bad-member"},
      {"entry leaves", "\"w\"", "\"../w\"", "record/unsafe-name"},
      {"manifest is absolute", "\"model/.cairn.json\"", "\"/etc/passwd\"", "record/unsafe-name"},
      {"manifest is beside its directory", "\"model/.cairn.json\"", "\"m\"", "record/bad-member"},
      {"newer", "\"format\": 1", "\"format\": 2", "record/newer-format"},
  };
  for (const Damage& damage : damages) {
    std::string text = must(dump_record(sample()));
    const std::size_t at = text.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.name;
    text.replace(at, std::string(damage.from).size(), damage.to);
    const auto parsed = parse_record(text);
    ASSERT_FALSE(parsed) << damage.name;
    EXPECT_EQ(parsed.error().reason(), damage.reason) << damage.name;
  }
  EXPECT_EQ(parse_record("[]").error().reason(), "record/bad-json");
  EXPECT_NE(parse_record("{\"format\": 9}").error().message().find("format 9"), std::string::npos);
}

}  // namespace
}  // namespace cairn
