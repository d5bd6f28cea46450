// SPDX-License-Identifier: Apache-2.0
// What must be refused: by its reason, and with nothing changed.
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cairn/format/zarr2/metadata.h"
#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/save/save.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/little_memory.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::must;
using testing::read_file;
using testing::reason;
using testing::TempDir;
using testing::write_file;

Array array_of(DType dtype, const Shape& shape) {
  testing::Random random(7);
  return testing::random_array(random, dtype, shape);
}

Tree small_tree() { return Tree::dict({{"w", array_of(DType::kFloat32, {4, 4})}}); }

/// Every file and link below a directory with its content, but for the lock: its text names the
/// last writer.
std::map<std::string, std::string> contents(const std::string& directory) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().lexically_relative(directory).string();
    if (name.ends_with(".cairn-lock")) continue;
    if (entry.is_symlink()) {
      found[name] = "-> " + fs::read_symlink(entry.path()).string();
    } else {
      found[name] = entry.is_directory() ? "/" : read_file(entry.path().string());
    }
  }
  return found;
}

class BadInput : public ::testing::TestWithParam<std::string> {
 protected:
  Result<SaveReport> save(const Tree& tree, const std::string& path,
                          const std::string& prefix = "model") {
    return save_tree(tree, path, {.layout = GetParam()}, runtime_, prefix);
  }

  Runtime runtime_;
  TempDir dir_;
};

TEST_P(BadInput, TreesThatCannotBeStoredAreRefusedBeforeAnythingIsMade) {
  const Array array = array_of(DType::kFloat32, {2});
  Tree deep = array;
  for (int i = 0; i < 201; ++i) deep = Tree::list({deep});
  const std::pair<Tree, const char*> cases[] = {
      {Tree::dict({{"a", array}, {"a", array}}), "keypath/collision"},
      {Tree::dict({{1, array}, {"1", array}}), "keypath/collision"},
      {Tree::dict({{std::string(256, 'x'), array}}), "keypath/part-too-long"},
      {Tree::dict({{"\xff", array}}), "structure/not-utf8"},
      {deep, "tree/too-deep"},
  };
  for (const auto& [tree, expected] : cases) {
    EXPECT_EQ(reason(save(tree, dir_ / "c")), expected);
    EXPECT_FALSE(fs::exists(dir_ / "c")) << expected;
  }
}

TEST_P(BadInput, PrefixesThatWouldLeaveOrHideAreRefused) {
  for (const char* prefix : {"..", "../x", "a/../b", "/x", ".hidden", "a..b"}) {
    EXPECT_EQ(reason(save(small_tree(), dir_ / "c", prefix)), "prefix/invalid") << prefix;
    EXPECT_FALSE(fs::exists(dir_ / "c")) << prefix;
  }
}

TEST_P(BadInput, AFileWhereADirectoryIsMeantIsRefused) {
  write_file(dir_ / "file", "mine");
  for (const char* path : {"file", "file/below", "file/a/b"}) {
    EXPECT_EQ(reason(save(small_tree(), dir_ / path)), "fs/not-a-directory") << path;
  }
  EXPECT_EQ(read_file(dir_ / "file"), "mine");
}

/// Ways in which a symbolic link can lie where a save would write, once a checkpoint is there.
struct LinkCase {
  const char* name;
  std::string link;  // replaced by a link to "target/<its name>"
  const char* reason;
};

TEST_P(BadInput, LinksOnTheWayOfAWriteAreRefusedAndTheirTargetsStay) {
  const bool zarr = GetParam() == kZarr2Layout;
  const LinkCase cases[] = {
      {"the destination", "c", "fs/symlink"},
      {"the prefix", zarr ? "c/model" : "c/model.safetensors", "commit/symlink"},
      {"the lock", "c/.cairn-lock", "fs/symlink"},
  };
  for (const LinkCase& one : cases) {
    TempDir dir;
    must(save(small_tree(), dir / "c"));
    fs::create_directories(dir / "target");
    const std::string away = dir / "target/moved";
    fs::rename(dir / one.link, away);
    fs::create_symlink(away, dir / one.link);
    const auto before = contents(dir.path());
    // Reading through the link works.
    EXPECT_EQ(reason(load(dir / "c", {}, runtime_)), "none") << one.name;
    EXPECT_EQ(reason(save(small_tree(), dir / "c")), one.reason) << one.name;
    EXPECT_EQ(contents(dir.path()), before) << one.name;
  }
}

TEST_P(BadInput, ADirectoryAboveTheDestinationMayBeALink) {
  fs::create_directories(dir_ / "disk");
  fs::create_directory_symlink(dir_ / "disk", dir_ / "runs");
  must(save(small_tree(), dir_ / "runs/c"));
  EXPECT_EQ(reason(load(dir_ / "disk/c", {}, runtime_)), "none");
}

TEST(BadInputOfFormats, SomethingElseWhereAZarrPrefixWouldGoIsRefused) {
  Runtime runtime;
  TempDir dir;
  fs::create_directories(dir / "c/model");
  write_file(dir / "c/model/thesis.txt", "mine");
  const auto before = contents(dir.path());
  EXPECT_EQ(reason(save_tree(small_tree(), dir / "c", {}, runtime, "model")),
            "commit/foreign-entry");
  EXPECT_EQ(contents(dir.path()), before);
}

TEST(BadInputOfFormats, AnArrayAloneWithoutANameIsRefusedBeforeAnythingIsMade) {
  Runtime runtime;
  const TempDir dir;
  EXPECT_EQ(reason(save_tree(Tree(array_of(DType::kInt8, {3})), dir / "c", {}, runtime)),
            "layout/root-array");
  EXPECT_TRUE(contents(dir.path()).empty());
}

TEST(BadInputOfFormats, TypesThatAFormatLacksAreRefusedByName) {
  Runtime runtime;
  TempDir dir;
  const Tree tree = Tree::dict({{"w", array_of(DType::kUint4, {2, 2})}});
  const auto refused = save_tree(tree, dir / "c", {.layout = std::string(kZarr2Layout)}, runtime);
  EXPECT_EQ(reason(refused), "zarr2/dtype-unsupported");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("uint4"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("leaf w"));
}

/// A foreign checkpoint of one array, changed by `text` in one of its files.
TEST(BadInputOfFormats, ForeignFilesThatLieAreRefused) {
  const char* const zarray =
      R"({"chunks":[4],"compressor":null,"dtype":"<f4","fill_value":null,"filters":null,)"
      R"("order":"C","shape":[4],"zarr_format":2})";
  const char* const odd =
      R"({"chunks":[4],"compressor":null,"dtype":"<q4","fill_value":null,"filters":null,)"
      R"("order":"C","shape":[4],"zarr_format":2})";
  const auto index = [](const std::string& path) {
    return R"({"format":"tensorstore","version":"2.0","prefixes":{"m":[{"path":")" + path +
           R"(","shape":[4],"dtype":"float32"}]}})";
  };
  const auto twice = [](const std::string& path) {
    const std::string array = R"({"path":")" + path + R"(","shape":[4],"dtype":"float32"})";
    return R"({"format":"tensorstore","version":"2.0","prefixes":{"m":[)" + array + "," + array +
           "]}}";
  };
  struct Case {
    std::string index;
    std::string zarray;
    const char* reason;
  };
  const Case cases[] = {
      {index("m/w"), zarray, "none"},
      {index("../m/w"), zarray, "index/unsafe-path"},
      {index("m/../../w"), zarray, "index/unsafe-path"},
      {index("/etc"), zarray, "index/unsafe-path"},
      {index("m/w\\u0000"), zarray, "index/unsafe-path"},
      {index("m/w"), odd, "zarr2/dtype-unknown"},
      {index("m/w"), "{", "zarr2/not-json"},
      {twice("m/w"), zarray, "index/duplicate-path"},
  };
  Runtime runtime;
  for (const Case& one : cases) {
    TempDir dir;
    fs::create_directories(dir / "m/w");
    write_file(dir / "m/w/.zarray", one.zarray);
    write_file(dir / "m/w/0", std::string(16, '\1'));
    write_file(dir / "tensorstore_index.json", one.index);
    EXPECT_EQ(reason(load(dir.path(), {}, runtime)), one.reason) << one.index << one.zarray;
  }
}

/// A safetensors file of one tensor of one byte.
std::string file_of(const std::string& tensor, const std::string& metadata) {
  const std::string header = "{\"__metadata__\":{" + metadata + "},\"" + tensor +
                             R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  std::string text;
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(header.size() >> shift);
  return text + header + "x";
}

TEST(BadInputOfFormats, SomebodyElsesTextUnderTheNameOfTheManifestIsMetadata) {
  const TempDir dir;
  Runtime runtime;
  for (const char* theirs :
       {"1.2", "", "{}", R"({\"version\": 1.2})", "[", "null", R"({\"layout\":\"NCHW\"})",
        R"({\"layout\":\"NCHW\",\"structure\":\"cubic\"})", R"({\"structure\":{},\"digest\":\"\"})",
        R"({\"format\":1,\"layout\":\"safetensors\",\"prefix\":\"\",\"step\":1,\"structure\":{},)"
        R"(\"metadata\":{},\"arrays\":{},\"parts\":[],\"digest\":\"00\"})"}) {
    write_file(dir / "m.safetensors",
               file_of("w", R"("cairn":")" + std::string(theirs) + R"(","who":"they")"));
    const auto loaded = load(dir / "m.safetensors", {}, runtime);
    ASSERT_TRUE(loaded) << theirs << ": " << loaded.error().to_string();
    EXPECT_TRUE(loaded->foreign);
    EXPECT_EQ(loaded->metadata.object()->size(), 2U) << theirs;
  }
}

TEST(BadInputOfFormats, AManifestInAFileStaysOneWhereAMemberIsDamaged) {
  const TempDir dir;
  Runtime runtime;
  const std::string whole = read_file(testing::source_path("tests/golden/v1/bare.safetensors"));
  for (const char* const member :
       {"format", "layout", "prefix", "step", "attempt", "run_id", "time", "writer", "ranks",
        "metadata", "extras", "structure", "arrays", "block_bytes", "lengths", "crcs", "digest"}) {
    std::string damaged = whole;
    const std::size_t place = damaged.find(fmt::format(R"(\"{}\":)", member));
    ASSERT_NE(place, std::string::npos) << member;
    damaged[place + 2] = '~';
    write_file(dir / "m.safetensors", damaged);
    const auto opened = open_checkpoint(dir / "m.safetensors", runtime);
    EXPECT_TRUE(!opened || !opened->prefixes.front().foreign) << member;
  }
}

TEST(BadInputOfFormats, NamesOfTooManyPartsAreRefused) {
  const TempDir dir;
  Runtime runtime;
  std::string name = "k";
  for (int i = 0; i < 1000; ++i) name += ".k";
  write_file(dir / "m.safetensors", file_of(name, ""));
  const auto opened = open_checkpoint(dir / "m.safetensors", runtime);
  ASSERT_EQ(reason(opened), "keypath/too-deep");
  EXPECT_LT(opened.error().to_string().size(), 1000U);
  name.resize(name.size() - 2);
  write_file(dir / "m.safetensors", file_of(name, ""));
  EXPECT_EQ(reason(open_checkpoint(dir / "m.safetensors", runtime)), "none");
}

TEST(BadInputOfFormats, ManyTextsBesideTensorsAreReadInLittleTime) {
  const TempDir dir;
  Runtime runtime;
  constexpr int kTexts = 100'000;
  std::string metadata;
  for (int i = 0; i < kTexts; ++i)
    metadata += (i == 0 ? "\"k" : ",\"k") + std::to_string(i) + "\":\"v\"";
  write_file(dir / "m.safetensors", file_of("w", metadata));
  const auto start = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = must(open_checkpoint(dir / "m.safetensors", runtime));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  EXPECT_EQ(checkpoint.prefixes.front().manifest.metadata.object()->size(), std::size_t{kTexts});
}

TEST(BadInputOfFormats, AValueOfTooManyPartsIsRefused) {
  const TempDir dir;
  Runtime runtime;
  std::string key = "m";
  for (int n = 0; n < 300'000; ++n) key += ".a";
  write_file(dir / "tensorstore_index.json", R"({"format": "tensorstore", "prefixes": {"m": []}})");
  write_file(dir / "m_structure.json",
             R"({"format": "pytree-structure", "prefix": "m", "treedef_b64": "", )"
             R"("leaf_keys_full": [")" +
                 key +
                 R"("], "arr_mask": [false], "array_relpaths": [], )"
                 R"("nonarray_payload": {"0": "gARLAi4="}})");
  EXPECT_EQ(reason(load(dir.path(), {.prefix = "m"}, runtime)), "keypath/too-deep");
}

TEST(BadInputOfFormats, SizesThatCannotBeAddedUpAreRefused) {
  const TempDir dir;
  Runtime runtime;
  const std::string zarray = R"({"chunks":[1099511627776],"compressor":null,"dtype":"|u1",)"
                             R"("fill_value":0,"filters":null,"order":"C",)"
                             R"("shape":[576460752303423488],"zarr_format":2})";
  for (const char* const name : {"a", "b", "c"}) {
    fs::create_directories(dir / name);
    write_file(dir / (std::string(name) + "/.zarray"), zarray);
    EXPECT_EQ(reason(open_checkpoint(dir.path(), runtime)),
              std::string(name) == "c" ? "checkpoint/size-overflow" : "none");
  }
}

TEST(BadInputOfFormats, VerifyTakesNoMemoryForChunksThatAreNotThere) {
  const TempDir dir;
  Runtime runtime;
  // 1 EiB in one chunk: it would not fit if it were made.
  write_file(dir / ".zarray", R"({"chunks":[144115188075855872],"compressor":null,"dtype":"<f8",)"
                              R"("fill_value":0,"filters":null,"order":"C",)"
                              R"("shape":[144115188075855872],"zarr_format":2})");
  const Checkpoint one = must(open_checkpoint(dir.path(), runtime));
  EXPECT_TRUE(must(verify(one, {}, runtime)).damages.empty());
  write_file(dir / "0", "short");
  const VerifyReport report = must(verify(one, {}, runtime));
  ASSERT_EQ(report.damages.size(), 1U);
  EXPECT_EQ(report.damages.front().reason, "chunk/size");
}

TEST(BadInputOfFormats, ALoadThatCannotFitIntoMemoryIsRefusedBeforeItBegins) {
  const TempDir dir;
  Runtime runtime;
  // Each would fit; there are no chunks.
  const std::uint64_t each = largest_possible_memory() / 3;
  for (const char* const name : {"a", "b", "c", "d"}) {
    fs::create_directories(dir / name);
    write_file(dir / (std::string(name) + "/.zarray"),
               fmt::format(R"({{"chunks":[{0}],"compressor":null,"dtype":"|i1","fill_value":0,)"
                           R"("filters":null,"order":"C","shape":[{0}],"zarr_format":2}})",
                           each));
  }
  const auto loaded = load(dir.path(), {}, runtime);
  EXPECT_EQ(reason(loaded), "load/no-memory");
}

TEST(BadInputOfFormats, APartThatCannotFitIntoMemoryIsRefused) {
  const TempDir dir;
  Runtime runtime;
  const auto bytes = static_cast<Index>(largest_possible_memory() + 1);
  write_file(dir / ".zarray",
             fmt::format(R"({{"chunks":[1048576],"compressor":null,"dtype":"|i1","fill_value":0,)"
                         R"("filters":null,"order":"C","shape":[{}],"zarr_format":2}})",
                         2 * bytes));
  const Checkpoint one = must(open_checkpoint(dir.path(), runtime));
  EXPECT_EQ(reason(load_box(one.prefixes[0], 0, Box{{0}, {bytes}}, runtime)), "load/no-memory");
  EXPECT_TRUE(load_box(one.prefixes[0], 0, Box{{bytes}, {bytes + 1}}, runtime));
}

TEST(BadInputOfFormats, AChunkThatCannotFitIntoMemoryIsNoDamage) {
  const TempDir dir;
  Runtime runtime({.threads = 1});
  const testing::LittleMemory limit(2 * kGiB);
  rlimit space{};
  ::getrlimit(RLIMIT_AS, &space);
  EXPECT_LE(largest_possible_memory(), space.rlim_cur);
  const std::uint64_t bytes = 2 * largest_possible_memory();
  if (bytes > format::zarr2::kMaxCompressedChunkBytes)
    GTEST_SKIP() << "sanitizers have more address space than a chunk may need";
  write_file(dir / ".zarray",
             fmt::format(R"({{"chunks":[{0}],"compressor":{{"id":"zstd","level":1}},"dtype":"|i1",)"
                         R"("fill_value":0,"filters":null,"order":"C","shape":[{0}],)"
                         R"("zarr_format":2}})",
                         bytes));
  // As long as zstd can make it of.
  write_file(dir / "0", std::string(bytes / 16'384, '\0'));
  const Checkpoint one = must(open_checkpoint(dir.path(), runtime));
  EXPECT_EQ(reason(verify(one, {}, runtime)), "load/no-memory");
  const auto element = load_box(one.prefixes[0], 0, Box{{0}, {1}}, runtime);
  EXPECT_EQ(reason(element), "load/no-memory");
}

TEST(BadInputOfFormats, ChunksOfAllArraysTogetherAreLimited) {
  const TempDir dir;
  Runtime runtime;
  for (const char* const name : {"a", "b", "c"}) {
    fs::create_directories(dir / name);
    write_file(dir / (std::string(name) + "/.zarray"),
               R"({"chunks":[1],"compressor":null,"dtype":"|i1","fill_value":0,"filters":null,)"
               R"("order":"C","shape":[4194304],"zarr_format":2})");
    EXPECT_EQ(reason(open_checkpoint(dir.path(), runtime)),
              std::string(name) == "c" ? "checkpoint/too-many-chunks" : "none");
  }
}

TEST(BadInputOfFormats, MetadataAreNotCopiedIntoThousandsOfTrees) {
  const TempDir dir;
  Runtime runtime;
  std::string index = R"({"format":"tensorstore","version":"2.0","prefixes":{)";
  for (int i = 0; i < 20'000; ++i) index += fmt::format(R"({}"p{}":[])", i == 0 ? "" : ",", i);
  write_file(dir / "tensorstore_index.json", index + "}}");
  write_file(dir / "checkpoint_metadata.json",
             R"({"timestamp":"t","checksum":{},"custom_metadata":{"long":")" +
                 std::string(100'000, 'x') + R"("}})");
  const Checkpoint opened = must(open_checkpoint(dir.path(), runtime));
  EXPECT_TRUE(opened.prefixes.front().manifest.metadata.is_null());
  EXPECT_NE(fmt::format("{}", fmt::join(opened.notes, "; ")).find("too long for 20000 trees"),
            std::string::npos);
}

TEST(BadInputOfFormats, AChunkThatWasCutIsRefused) {
  Runtime runtime;
  for (const bool ours : {true, false}) {
    TempDir dir;
    must(save_tree(small_tree(), dir / "c", {}, runtime, "m"));
    if (!ours) fs::remove(dir / "c/cairn.json");
    fs::resize_file(dir / "c/m/w/0.0", 60);
    const auto loaded = load(dir / "c", {}, runtime);
    EXPECT_EQ(reason(loaded), ours ? "load/chunk-length" : "chunk/size");
    ASSERT_FALSE(loaded);
    EXPECT_THAT(loaded.error().to_string(), HasSubstr("m/w/0.0"));
  }
}

TEST(BadInputOfFormats, AWeightMapThatLeavesTheFolderIsRefused) {
  Runtime runtime;
  TempDir dir;
  must(save_tree(small_tree(), dir / "other.safetensors", {}, runtime));
  fs::create_directories(dir / "c");
  write_file(dir / "c/model.safetensors.index.json",
             R"({"metadata":{},"weight_map":{"w":"../other.safetensors"}})");
  EXPECT_EQ(reason(load(dir / "c", {}, runtime)), "safetensors-index/part-path");
}

INSTANTIATE_TEST_SUITE_P(Layouts, BadInput,
                         ::testing::Values(std::string(kZarr2Layout),
                                           std::string(kSafetensorsLayout)));

}  // namespace
}  // namespace cairn
