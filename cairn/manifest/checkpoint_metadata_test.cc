// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/checkpoint_metadata.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "cairn/base/clock.h"
#include "cairn/base/sha256.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

TEST(CheckpointMetadata, HasDefaultsLikeTheReferenceSystem) {
  const Json json = CheckpointMetadata().to_dict();
  std::vector<std::string> names;
  for (const auto& [name, value] : *json.object()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"version", "timestamp", "checksum", "array_metadata",
                                             "framework_version", "custom_metadata"}));
  EXPECT_TRUE(json.find("version")->text()->starts_with("cairn "));
  EXPECT_TRUE(parse_timestamp(*json.find("timestamp")->text()));
  EXPECT_EQ(*json.find("checksum"), Json(Json::Object{}));
  EXPECT_EQ(*json.find("custom_metadata"), Json(Json::Object{}));
  EXPECT_TRUE(json.find("framework_version")->is_null());
}

TEST(CheckpointMetadata, KeepsWhatOthersAddedAndBearsWhatIsMissing) {
  const std::string text =
      R"({"version": "easydel", "timestamp": "2026-01-02T03:04:05", "checksum": {"w": "ab"}, )"
      R"("array_metadata": {"w": {"dtype": "float32", "shape": [2]}}, "framework_version": "9", )"
      R"("custom_metadata": {"lr": 0.5}, "mine": [1, {"a": null}]})";
  const auto metadata = must(parse_checkpoint_metadata(text));
  EXPECT_EQ(metadata.version, "easydel");
  EXPECT_EQ(metadata.framework_version, "9");
  EXPECT_EQ(metadata.custom_metadata.find("lr")->number(), 0.5);
  EXPECT_EQ(dump_checkpoint_metadata(metadata), text);
  EXPECT_EQ(must(CheckpointMetadata::from_dict(metadata.to_dict())), metadata);

  EXPECT_EQ(must(parse_checkpoint_metadata("{}")), CheckpointMetadata());
  EXPECT_EQ(must(parse_checkpoint_metadata(R"({"timestamp": null, "checksum": null})")),
            CheckpointMetadata());
}

TEST(CheckpointMetadata, RefusesWhatIsNone) {
  for (const char* text : {R"({"version": 1})", R"({"timestamp": []})", R"({"checksum": "x"})",
                           R"({"array_metadata": 3})", R"({"framework_version": {}})",
                           R"({"custom_metadata": [1]})"}) {
    EXPECT_EQ(reason(parse_checkpoint_metadata(text)), "metadata/bad-member") << text;
  }
  EXPECT_EQ(reason(parse_checkpoint_metadata("[]")), "metadata/not-an-object");
  EXPECT_EQ(reason(parse_checkpoint_metadata("{")), "json/syntax");
}

TEST(CheckpointMetadata, HasLocalTimeWithoutAZone) {
  const Clock::Wall time{std::chrono::microseconds(1767323045678901)};
  Manifest manifest;
  manifest.time = format_timestamp(time);
  EXPECT_EQ(describe_checkpoint(manifest, false).timestamp, format_local_timestamp(time));
}

/// A checkpoint as another system would have left it: arrays, index, metadata.
class ForeignCheckpoint : public ::testing::Test {
 protected:
  void save(const std::vector<NamedTree>& trees) {
    must(save_checkpoint(trees, path_, {.metadata = Json(Json::Object{{"lr", 0.5}})}, runtime_));
    std::filesystem::remove(path_ + "/cairn.json");
  }
  void describe(std::string_view text) {
    std::ofstream(path_ + "/checkpoint_metadata.json") << text;
  }
  std::string checksums(const std::string& digest, std::string_view key = "w") {
    Json::Object sums;
    sums.emplace_back(std::string(key), digest);
    return dump_checkpoint_metadata({.checksum = sums});
  }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "c";
  Runtime runtime_{RuntimeOptions{}};
  const Array zeros_ = must(Array::zeros(DType::kFloat32, {4}));
  const Tree tree_ = Tree::dict({{"w", zeros_}});
  const std::string good_ = sha256_hex(zeros_.bytes());
};

TEST_F(ForeignCheckpoint, HasItsUsersMetadata) {
  save({{"model", tree_}});
  const auto loaded = must(load(path_, {}, runtime_));
  EXPECT_EQ(loaded.metadata.find("lr")->number(), 0.5);
}

TEST_F(ForeignCheckpoint, IsCheckedByItsDigests) {
  save({{"model", tree_}});
  describe(checksums(good_));
  must(load(path_, {.validate = true}, runtime_));
  const auto good = must(verify(must(open_checkpoint(path_, runtime_)), {}, runtime_));
  EXPECT_TRUE(good.damages.empty());
  EXPECT_TRUE(good.unchecked.empty());
  describe(checksums(std::string(64, '0')));
  must(load(path_, {}, runtime_));
  EXPECT_EQ(reason(load(path_, {.validate = true}, runtime_)), "load/sha256");
  const auto bad = must(verify(must(open_checkpoint(path_, runtime_)), {}, runtime_));
  ASSERT_EQ(bad.damages.size(), 1U);
  EXPECT_EQ(bad.damages.front().key, "w");
}

TEST_F(ForeignCheckpoint, IsNotCheckedByDigestsOfAnotherTree) {
  save({{"model", tree_}, {"tx", tree_}});
  describe(checksums(std::string(64, '0')));
  must(load(path_, {.prefix = "model", .validate = true}, runtime_));
  must(load(path_, {.prefix = "tx", .validate = true}, runtime_));
}

TEST_F(ForeignCheckpoint, LoadsWithMetadataThatIsShortOrBroken) {
  save({{"model", tree_}});
  for (const std::string& text :
       {std::string("{}"), std::string("nonsense"), std::string("[1]"), checksums("x", "other")}) {
    describe(text);
    must(load(path_, {.validate = true}, runtime_));
    EXPECT_EQ(must(verify(must(open_checkpoint(path_, runtime_)), {}, runtime_)).unchecked.size(),
              1U)
        << text;
  }
  describe("nonsense");
  const auto opened = must(open_checkpoint(path_, runtime_));
  EXPECT_NE(opened.notes.front().find("checkpoint_metadata.json was left aside"),
            std::string::npos);
}

}  // namespace
}  // namespace cairn
