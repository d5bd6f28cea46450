// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/open.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/format/zarr2/metadata.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn::format {
namespace {

using ::testing::HasSubstr;

std::string zarray() {
  StoredArray array;
  array.shape = array.chunk_shape = {3};
  return *zarr2::dump_metadata(array);
}

class Open : public ::testing::Test {
 protected:
  void put(std::string_view key, std::string_view text) {
    ASSERT_TRUE(store_->put(key, as_bytes(text)));
  }
  std::unique_ptr<storage::Store> store_ = storage::make_memory_store();
};

TEST_F(Open, FindsAnArrayInADirectory) {
  put("a/w/.zarray", zarray());
  const auto array = open_array(*store_, "a/w");
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->key, "a/w");
  EXPECT_EQ(array->chunk_key(0), "a/w/0");
}

TEST_F(Open, FindsAnArrayAtTheRoot) {
  put(".zarray", zarray());
  const auto array = open_array(*store_, "");
  ASSERT_TRUE(array) << array.error().to_string();
  EXPECT_EQ(array->key, "");
  EXPECT_EQ(array->chunk_key(0), "0");
}

TEST_F(Open, SaysWhatItLookedForWhereThereIsNoArray) {
  const auto array = open_array(*store_, "a/w");
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().reason(), "format/no-array");
  EXPECT_EQ(array.error().code(), Code::kNotFound);
  EXPECT_THAT(array.error().to_string(), HasSubstr(".zarray"));
}

TEST_F(Open, NamesTheFileThatIsDamaged) {
  put("a/w/.zarray", "{");
  const auto array = open_array(*store_, "a/w");
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().reason(), "zarr2/not-json");
  EXPECT_THAT(array.error().where(), HasSubstr("a/w/.zarray"));
}

TEST_F(Open, ReadsNoMetadataAboveItsLimit) {
  put("w/.zarray", zarray() + std::string(zarr2::kMaxMetadataBytes, ' '));
  const auto array = open_array(*store_, "w");
  ASSERT_FALSE(array);
  EXPECT_EQ(array.error().reason(), "format/metadata-too-large");
  EXPECT_EQ(array.error().code(), Code::kCorrupt);
}

TEST_F(Open, KnowsAnArrayWithoutReadingIt) {
  put("w/.zarray", "{");
  put("x/0", "abc");
  EXPECT_TRUE(*is_array(*store_, "w"));
  EXPECT_FALSE(*is_array(*store_, "x"));
  EXPECT_FALSE(*is_array(*store_, ""));
}

}  // namespace
}  // namespace cairn::format
