// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/reader.h"

#include <gtest/gtest.h>

#include "cairn/format/safetensors/writer.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn::format::safetensors {
namespace {

void put(storage::Store& store, std::string_view key, std::string_view bytes) {
  ASSERT_TRUE(store.put(key, as_bytes(bytes)));
}

// A file of int8 tensors of one element each.
void write_part(storage::Store& store, std::string_view key, std::vector<std::string> names) {
  std::vector<Tensor> tensors;
  for (std::string& name : names) tensors.push_back({std::move(name), DType::kInt8, {1}});
  auto writer = Writer::create(store, key, std::move(tensors), {});
  ASSERT_TRUE(writer);
  for (const Tensor& tensor : writer->tensors()) {
    ASSERT_TRUE(writer->write(tensor, 0, as_bytes("x")));
  }
  ASSERT_TRUE(writer->finish());
}

TEST(SafetensorsReader, ReadsAHeaderThatIsLongerThanItsFirstRead) {
  const auto store = storage::make_memory_store();
  std::vector<std::string> names;
  for (int i = 0; i < 2000; ++i) names.push_back("layers." + std::to_string(i) + ".kernel");
  write_part(*store, "model.safetensors", names);
  const auto header = read_header(*store, "model.safetensors");
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_GT(header->data_start, 64 * kKiB);
  EXPECT_EQ(header->tensors.size(), names.size());
}

TEST(SafetensorsReader, NamesTheFileInItsErrors) {
  const auto store = storage::make_memory_store();
  put(*store, "a/short", "1234567");
  put(*store, "a/claims", std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00{}", 10));
  struct Case {
    std::string_view key;
    Code code;
    std::string_view reason;
  };
  const Case cases[] = {
      {"a/none", Code::kNotFound, "storage/not-found"},
      {"a/short", Code::kCorrupt, "safetensors/header-too-small"},
      {"a/claims", Code::kCorrupt, "safetensors/header-length"},
  };
  for (const Case& c : cases) {
    const auto header = read_header(*store, c.key);
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().reason(), c.reason);
    EXPECT_EQ(header.error().code(), c.code);
    const std::string place = store->describe(c.key);
    const std::string text = header.error().to_string();
    EXPECT_NE(text.find(place), std::string::npos) << text;
    EXPECT_EQ(text.find(place), text.rfind(place)) << text;
  }
}

TEST(SafetensorsReader, ReadsAnIndexAndItsParts) {
  const auto store = storage::make_memory_store();
  write_part(*store, "run/m-1.safetensors", {"a", "b"});
  write_part(*store, "run/sub/m-2.safetensors", {"c", "not in the index"});
  put(*store, "run/model.safetensors.index.json",
      R"({"weight_map":{"c":"sub/m-2.safetensors","a":"m-1.safetensors","b":"m-1.safetensors"}})");
  const auto index = read_index(*store, "run/model.safetensors.index.json");
  ASSERT_TRUE(index) << index.error().to_string();
  const auto parts = read_parts(*store, "run", *index);
  ASSERT_TRUE(parts) << parts.error().to_string();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].key, "run/m-1.safetensors");
  EXPECT_EQ((*parts)[0].header.tensors.size(), 2u);
  EXPECT_EQ((*parts)[1].key, "run/sub/m-2.safetensors");
  EXPECT_EQ((*parts)[1].header.tensors.size(), 2u);
}

TEST(SafetensorsReader, RefusesPartsThatDoNotHoldWhatTheIndexSays) {
  const auto store = storage::make_memory_store();
  write_part(*store, "m-1.safetensors", {"a"});
  write_part(*store, "sub/m-2.safetensors", {"b"});
  put(*store, "broken.safetensors", "12345678");
  struct Case {
    WeightMap map;
    std::string_view reason;
  };
  const Case cases[] = {
      {{{"a", "m-1.safetensors"}, {"b", "sub/m-2.safetensors"}}, "accepted"},
      {{}, "accepted"},
      {{{"a", "m-1.safetensors"}, {"b", "m-3.safetensors"}}, "safetensors-index/missing-part"},
      {{{"a", "sub"}}, "safetensors-index/part-is-directory"},
      {{{"a", "m-1.safetensors"}, {"b", "m-1.safetensors"}},
       "safetensors-index/tensor-not-in-part"},
      {{{"a", "sub/m-2.safetensors"}, {"b", "m-1.safetensors"}},
       "safetensors-index/tensor-not-in-part"},
      {{{"a", "broken.safetensors"}}, "safetensors/header-too-large"},
  };
  for (const Case& c : cases) {
    const auto parts = read_parts(*store, "", Index{c.map, {}});
    EXPECT_EQ(parts ? "accepted" : parts.error().reason(), c.reason);
    if (!parts) {
      EXPECT_EQ(parts.error().code(), Code::kCorrupt);
    }
  }
}

TEST(SafetensorsReader, NamesTheIndexInItsErrors) {
  const auto store = storage::make_memory_store();
  put(*store, "x.json", "{");
  const auto index = read_index(*store, "x.json");
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().reason(), "safetensors-index/not-json");
  EXPECT_NE(index.error().to_string().find("x.json"), std::string::npos);
}

}  // namespace
}  // namespace cairn::format::safetensors
