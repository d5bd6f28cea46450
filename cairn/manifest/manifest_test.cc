// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/tree/structure.h"

namespace cairn {
namespace {

format::StoredArray stored(DType dtype, Shape shape, Shape chunk) {
  format::StoredArray array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.chunk_shape = std::move(chunk);
  return array;
}

Manifest sample(std::string_view layout) {
  Manifest manifest;
  manifest.layout = layout;
  manifest.prefix = "model";
  manifest.step = 12;
  manifest.attempt = "abc";
  manifest.time = "2026-01-01T00:00:00.000000+00:00";
  manifest.writer = "cairn 0.1.0";
  manifest.metadata = Json(Json::Object{{"note", "mine"}});
  manifest.structure = *parse_json(R"({"dict": [["a", "array"], ["b.c", {"list": ["array", )"
                                   R"({"value": {"type": "int", "value": "5"}}]}]]})");
  ManifestArray a{KeyPath({"a"}),
                  stored(DType::kBfloat16, {5, 4}, {2, 4}),
                  DType::kFloat32,
                  {},
                  std::string(64, 'f')};
  ManifestArray b{KeyPath({"b.c", "0"}), stored(DType::kInt8, {3}, {3}), {}, {}, ""};
  if (layout == kZarr2Layout) {
    a.stored.key = "a";
    a.stored.codec = format::CodecSpec::zstd(1);
    b.stored.key = "b%2Ec/0";
    a.sums = *ChunkSums::make(kBlockBytes, {9, 3 * kBlockBytes, 7}, {1, 2, 3, 4, 5});
    b.sums = *ChunkSums::make(kBlockBytes, {3}, {9});
  } else {
    manifest.parts = {{"model.safetensors", 4096 + 43, 4096, 77}};
    a.stored.chunk_shape = {5, 4};
    for (ManifestArray* array : {&a, &b}) {
      array->stored.one_object = true;
      array->stored.key = "model.safetensors";
    }
    a.stored.offset = 4096;
    b.stored.offset = 4096 + 40;
    a.sums = *ChunkSums::make(kBlockBytes, {40}, {1});
    b.sums = *ChunkSums::make(kBlockBytes, {3}, {9});
  }
  manifest.arrays = {a, b};
  return manifest;
}

class ManifestText : public ::testing::TestWithParam<std::string> {};

TEST_P(ManifestText, ComesBackEqual) {
  const Manifest manifest = sample(GetParam());
  const auto parsed = parse_manifest(*dump_manifest(manifest));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(*dump_manifest(*parsed), *dump_manifest(manifest));
  ASSERT_EQ(parsed->arrays.size(), 2u);
  EXPECT_EQ(parsed->arrays[1].path, manifest.arrays[1].path);
  EXPECT_EQ(parsed->arrays[1].stored.key, manifest.arrays[1].stored.key);
  EXPECT_EQ(parsed->arrays[1].stored.offset, manifest.arrays[1].stored.offset);
  EXPECT_EQ(parsed->arrays[0].cast_from, DType::kFloat32);
  EXPECT_EQ(parsed->arrays[0].sums.crcs(), manifest.arrays[0].sums.crcs());
}

TEST_P(ManifestText, HoldsDigestsOfAllPiecesOfAnArray) {
  Manifest manifest = sample(GetParam());
  const bool chunks = GetParam() == kZarr2Layout;
  const auto with_ends = [&](const std::vector<std::uint64_t>& ends) {
    manifest.arrays[0].sha256.clear();
    manifest.arrays[0].pieces.clear();
    for (const std::uint64_t end : ends)
      manifest.arrays[0].pieces.push_back({end, {static_cast<std::byte>(end), std::byte{9}}});
    return parse_manifest(*dump_manifest(manifest));
  };
  const auto parsed =
      with_ends(chunks ? std::vector<std::uint64_t>{1, 2, 3} : std::vector<std::uint64_t>{8, 20});
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->arrays[0].pieces, manifest.arrays[0].pieces);
  EXPECT_TRUE(parsed->arrays[1].pieces.empty());
  // Too few, too many, none, twice.
  for (const auto& ends : std::vector<std::vector<std::uint64_t>>{
           {1, 2}, {1, 2, 3, 4}, {8, 21}, {0, 3}, {0, 20}, {1, 1, 3}, {8, 8, 20}}) {
    const auto refused = with_ends(ends);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().reason(), "manifest/bad-member");
  }
  std::string text = *dump_manifest(manifest);
  const std::string counts = "\"pieces\":[3,0]";
  ASSERT_NE(text.find(counts), std::string::npos) << text;
  for (const char* const wrong : {"\"pieces\":[4,0]", "\"pieces\":[2,0]", "\"pieces\":[3]"}) {
    std::string damaged = text;
    damaged.replace(damaged.find(counts), counts.size(), wrong);
    EXPECT_FALSE(parse_manifest(damaged)) << wrong;
  }
}

TEST_P(ManifestText, DigestSeesTheTreeAndTheBytesButNotTheTime) {
  const Manifest manifest = sample(GetParam());
  Manifest later = manifest;
  later.time = "2027-01-01T00:00:00.000000+00:00";
  later.step = 13;
  later.attempt = "def";
  EXPECT_EQ(root_digest(manifest), root_digest(later));
  Manifest changed = manifest;
  changed.arrays[1].sums = *ChunkSums::make(kBlockBytes, {3}, {10});
  EXPECT_NE(root_digest(manifest), root_digest(changed));
}

TEST_P(ManifestText, AnyChangedByteIsNoticedOrHarmless) {
  const Manifest manifest = sample(GetParam());
  const std::string text = *dump_manifest(manifest);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x01);
    const auto parsed = parse_manifest(damaged);
    if (parsed) {
      EXPECT_EQ(parsed->digest, root_digest(*parsed));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ManifestText,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

TEST(Manifest, HoldsTheDeepestTree) {
  Tree tree(Value(std::complex<double>(1, 2)));
  for (int i = 0; i < kMaxTreeDepth; ++i) {
    Tree::Children children;
    children.emplace_back("k", std::move(tree));
    tree = Tree::dict(std::move(children));
  }
  Manifest manifest = sample(kZarr2Layout);
  manifest.arrays.clear();
  manifest.structure = *structure_to_json(tree);
  const auto parsed = parse_manifest(*dump_manifest(manifest));
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->structure, manifest.structure);
}

TEST(Manifest, IsNotWrittenWhereItCouldNotBeRead) {
  Manifest manifest = sample(kZarr2Layout);
  Json deep;
  for (int i = 0; i < kMaxStructureJsonDepth + 16; ++i) deep = Json(Json::Object{{"k", deep}});
  manifest.metadata = deep;
  const auto text = dump_manifest(manifest);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().reason(), "json/too-deep");
  manifest.metadata = *deep.find("k");
  EXPECT_TRUE(parse_manifest(*dump_manifest(manifest)));
}

TEST(Manifest, RefusesDamageByName) {
  struct Damage {
    const char* from;
    const char* to;
    const char* reason;
  };
  const Damage damages[] = {
      {"{\"format\"", "[\"format\"", "manifest/bad-json"},
      {"\"format\":1", "\"format\":2", "manifest/newer-format"},
      {"\"layout\":\"zarr2\"", "\"layout\":\"zarr9\"", "manifest/bad-member"},
      {"\"metadata\":{", "\"metadata\":5,\"x\":{", "manifest/bad-member"},
      {"\"dtype\":[\"bfloat16\",", "\"dtype\":[", "manifest/columns"},
      {"\"bfloat16\"", "\"bfloat17\"", "manifest/bad-member"},
      {"[5,4]", "[5,-4]", "manifest/bad-member"},
      {"\"chunk\":[[2,4]", "\"chunk\":[[0,4]", "manifest/bad-member"},
      {"\"chunk\":[[2,4]", "\"chunk\":[[1,1]", "manifest/columns"},
      {"\"codec\":[0,1]", "\"codec\":[0,7]", "manifest/bad-member"},
      {"\"block_bytes\":1048576", "\"block_bytes\":1048577", "manifest/bad-member"},
      {"\"block_bytes\":1048576", "\"block_bytes\":16777216", "manifest/bad-member"},
      {"\"lengths\":\"", "\"lengths\":\"!", "manifest/bad-member"},
      {"\"digest\":\"", "\"digest\":\"0", "manifest/digest"},
      {"[\"a\",\"array\"],", "", "manifest/columns"},
      {"\"array\",{\"value\"", "\"arrow\",{\"value\"", "structure/bad-node"},
  };
  for (const Damage& damage : damages) {
    std::string text = *dump_manifest(sample(kZarr2Layout));
    const std::size_t at = text.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from << " in " << text;
    text.replace(at, std::string(damage.from).size(), damage.to);
    const auto parsed = parse_manifest(text);
    ASSERT_FALSE(parsed) << damage.from;
    EXPECT_EQ(parsed.error().reason(), damage.reason)
        << damage.from << ": " << parsed.error().to_string();
  }
}

/// A manifest with one array, whose sizes are written over it, under a digest that fits them.
struct Claim {
  std::string_view layout;
  Shape shape;
  Shape chunk;
  std::uint64_t length;  // of the one chunk
};

std::string claiming(const Claim& claim) {
  Manifest manifest = sample(claim.layout);
  manifest.structure = *parse_json(R"({"dict": [["a", "array"]]})");
  manifest.arrays.resize(1);
  ManifestArray& array = manifest.arrays.front();
  array.stored.dtype = DType::kFloat64;
  array.stored.shape = array.stored.chunk_shape = {1};
  array.stored.codec = {};
  array.sums = *ChunkSums::make(kBlockBytes, {claim.length},
                                std::vector<std::uint32_t>(claim.length == 0 ? 0 : 1, 7));
  std::string text = *dump_manifest(manifest);
  const std::string old_digest = root_digest(manifest);
  array.stored.shape = claim.shape;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  const auto list = [](const Shape& sizes) {
    return dump_json(Json::Array{Json::Array(sizes.begin(), sizes.end())});
  };
  replace("\"shape\":[[1]]", "\"shape\":" + list(claim.shape));
  if (claim.layout == kZarr2Layout) replace("\"chunk\":[[1]]", "\"chunk\":" + list(claim.chunk));
  replace(old_digest, root_digest(manifest));
  return text;
}

TEST(Manifest, RefusesSizesWhoseProductsDoNotFit) {
  EXPECT_TRUE(parse_manifest(claiming({kZarr2Layout, {100000}, {100000}, 800000})));
  EXPECT_TRUE(parse_manifest(claiming({kSafetensorsLayout, {100000}, {}, 800000})));
  constexpr Index kWraps = Index{1} << 61;
  const Claim claims[] = {
      {kZarr2Layout, {100000}, {kWraps + 1}, 8},
      {kZarr2Layout, {100000}, {kWraps}, 0},
      {kZarr2Layout, {1, 1}, {1 << 30, Index{1} << 31}, 0},
      {kZarr2Layout, {kWraps}, {kWraps}, 0},
      {kSafetensorsLayout, {kWraps}, {}, 0},
      {kSafetensorsLayout, {kWraps + 1}, {}, 8},
  };
  for (const Claim& claim : claims) {
    const auto parsed = parse_manifest(claiming(claim));
    ASSERT_FALSE(parsed) << to_string(claim.shape) << to_string(claim.chunk);
    EXPECT_EQ(parsed.error().code(), Code::kCorrupt);
    EXPECT_TRUE(parsed.error().reason().ends_with("-overflow")) << parsed.error().to_string();
  }
}

TEST(Manifest, IsNotWrittenWithSizesThatAreNotRead) {
  Manifest manifest = sample(kZarr2Layout);
  manifest.arrays.front().stored.chunk_shape = {Index{1} << 61, 4};
  const auto text = dump_manifest(manifest);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().reason(), "manifest/too-large");
}

TEST(Manifest, RefusesTwoPartsOfOneName) {
  Manifest manifest = sample(kSafetensorsLayout);
  manifest.parts.push_back(manifest.parts.front());
  manifest.parts.back().header_bytes += 8;
  const auto parsed = parse_manifest(*dump_manifest(manifest));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().reason(), "manifest/bad-member");
  EXPECT_NE(parsed.error().to_string().find("'parts'"), std::string::npos);
}

TEST(Manifest, RefusesRawChunksOfAnotherLength) {
  Manifest manifest = sample(kSafetensorsLayout);
  ManifestArray& array = manifest.arrays.front();
  ASSERT_TRUE(array.stored.codec.is_raw());
  array.sums = *ChunkSums::make(kBlockBytes, {array.stored.chunk_bytes() + 1}, {7});
  const auto parsed = parse_manifest(*dump_manifest(manifest));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().reason(), "manifest/columns");
}

TEST(ChunkSums, NeedOneSumForEachBlock) {
  EXPECT_TRUE(ChunkSums::make(4, {0, 1, 4, 5}, {1, 2, 3, 4}));
  EXPECT_FALSE(ChunkSums::make(4, {0, 1, 4, 5}, {1, 2, 3}));
  EXPECT_FALSE(ChunkSums::make(4, {5}, {1, 2, 3}));
  const auto sums = ChunkSums::make(4, {5, 8}, {1, 2, 3, 4});
  EXPECT_EQ(sums->crc(0, 1), 2u);
  EXPECT_EQ(sums->crc(1, 0), 3u);
}

}  // namespace
}  // namespace cairn
