// SPDX-License-Identifier: Apache-2.0
// Checkpoints that other systems wrote, opened and loaded as a user would; and damaged ones, each
// refused for the reason that its format gives, in little memory.
#include "cairn/testing/fixtures.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/base/sha256.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/format/open.h"
#include "cairn/format/read_array.h"
#include "cairn/format/safetensors/reader.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/little_memory.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

Json read_json(const std::string& path) { return must(parse_json(testing::read_file(path))); }

const std::string& text_of(const Json& object, std::string_view name) {
  return *object.find(name)->text();
}

struct Expected {
  std::string prefix;
  KeyPath path;
  const Json* about = nullptr;  // dtype, shape, nbytes, sha256, first, last
};

KeyPath path_of(const Json& leaf) {
  std::vector<std::string> parts;
  for (const Json& part : *leaf.find("path")->array()) parts.push_back(*part.text());
  return KeyPath(std::move(parts));
}

std::vector<Expected> expected_arrays(const Json& document) {
  std::vector<Expected> all;
  for (const Json& leaf : *document.find("leaves")->array()) {
    if (leaf.find("array") == nullptr) continue;
    const Json* prefix = leaf.find("prefix");
    all.push_back({prefix == nullptr ? "" : *prefix->text(), path_of(leaf), &leaf});
  }
  return all;
}

const Tree* find_node(const Tree& tree, const KeyPath& path) {
  const Tree* node = &tree;
  for (const std::string& part : path.parts()) {
    const bool indexed = node->kind() == TreeKind::kList || node->kind() == TreeKind::kTuple;
    node = node->find(indexed ? Key(std::stoi(part)) : Key(part));
    if (node == nullptr) return nullptr;
  }
  return node;
}

const Array* find_array(const Tree& tree, const KeyPath& path) {
  const Tree* const node = find_node(tree, path);
  if (node == nullptr || !node->is_leaf() || !is_array_like(node->leaf())) return nullptr;
  return &std::get<ShardedArray>(node->leaf()).array();
}

Shape shape_of(const Json& sizes) {
  Shape shape;
  for (const Json& size : *sizes.array()) shape.push_back(*size.integer());
  return shape;
}

void compare_bytes(ByteSpan bytes, const Json& about) {
  EXPECT_EQ(bytes.size(), *about.find("nbytes")->unsigned_integer());
  EXPECT_EQ(sha256_hex(bytes), text_of(about, "sha256"));
}

void compare(const Tree& tree, const KeyPath& path, const Json& about) {
  SCOPED_TRACE(path.text());
  const Array* array = find_array(tree, path);
  ASSERT_NE(array, nullptr) << "the leaf is not in the tree";
  EXPECT_EQ(dtype_name(array->dtype()), text_of(about, "dtype"));
  EXPECT_EQ(array->shape(), shape_of(*about.find("shape")));
  compare_bytes(array->bytes(), about);
}

// Prefix to number of arrays.
std::map<std::string, std::size_t> contents(const Checkpoint& checkpoint) {
  std::map<std::string, std::size_t> counts;
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    counts[prefix.name] = prefix.manifest.arrays.size();
    EXPECT_TRUE(prefix.foreign);
  }
  return counts;
}

class ForeignTrees : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignTrees, LoadWithTheirPrefixesKeyPathsAndBytes) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const Json document = read_json(folder + "/expected.json");
  const auto arrays = expected_arrays(document);
  ASSERT_FALSE(arrays.empty());
  Runtime runtime;
  const Checkpoint checkpoint = must(open_checkpoint(folder + "/checkpoint", runtime));
  std::map<std::string, std::size_t> expected;
  for (const Expected& array : arrays) ++expected[array.prefix];
  EXPECT_EQ(contents(checkpoint), expected);
  for (const auto& [prefix, count] : expected) {
    SCOPED_TRACE("prefix " + prefix);
    const Loaded loaded = must(load(checkpoint, {.prefix = prefix}, runtime));
    EXPECT_EQ(loaded.report.loaded.size(), count);
    for (const Expected& array : arrays) {
      if (array.prefix == prefix) compare(loaded.tree, array.path, *array.about);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , ForeignTrees,
    ::testing::Values("eformer_index_v1", "eformer_no_index", "eformer_save_pytree_optax",
                      "eformer_save_pytree_safetensors", "eformer_save_pytree_tensorstore",
                      "eformer_save_tree", "eformer_save_tree_no_prefix",
                      "eformer_save_tree_values", "zarr2_jax_dtypes", "zarr2_jax_ranks",
                      "zarr2_jax_sharded", "zarr2_old_frames", "zarr2_tensorstore_codecs",
                      "zarr2_tensorstore_layouts", "zarr2_zarrpython_codecs",
                      "zarr2_zarrpython_layouts"),
    [](const auto& fixture) { return std::string(fixture.param); });

/// The same containers, children in the same order.
void compare_kinds(const Tree& tree, const Json& about) {
  const std::string& kind = text_of(about, "kind");
  if (kind == "leaf") {
    EXPECT_TRUE(tree.is_leaf() || tree.kind() == TreeKind::kNone);
    return;
  }
  const std::map<std::string, TreeKind> kinds{{"dict", TreeKind::kDict},
                                              {"list", TreeKind::kList},
                                              {"tuple", TreeKind::kTuple},
                                              {"namedtuple", TreeKind::kNamedTuple},
                                              {"none", TreeKind::kNone}};
  ASSERT_EQ(tree.kind(), kinds.at(kind));
  const Json* children = about.find("children");
  if (children == nullptr) return;
  std::vector<const Json*> expected;
  if (const auto* named = children->object()) {
    for (const auto& [name, child] : *named) expected.push_back(&child);
  } else {
    for (const Json& child : *children->array()) expected.push_back(&child);
  }
  ASSERT_EQ(tree.children().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(tree.children()[i].first.part());
    compare_kinds(tree.children()[i].second, *expected[i]);
  }
}

void compare_value(const Tree& tree, const Json& leaf) {
  SCOPED_TRACE(text_of(leaf, "key"));
  const Tree* const node = find_node(tree, path_of(leaf));
  ASSERT_NE(node, nullptr);
  const Json& about = *leaf.find("value");
  if (text_of(about, "type") == "none") {
    EXPECT_EQ(node->kind(), TreeKind::kNone);
    return;
  }
  ASSERT_TRUE(node->is_leaf() && !is_array_like(node->leaf()));
  const Json found = must(value_to_json(std::get<Value>(node->leaf())));
  EXPECT_EQ(text_of(found, "type"), text_of(about, "type"));
  // Bytes and complex numbers are spelled otherwise there.
  const bool same = about.find("value") != nullptr && text_of(about, "type") != "bytes";
  if (!same) return;
  if (text_of(about, "type") == "float") {
    EXPECT_EQ(std::stod(text_of(found, "value")), std::stod(text_of(about, "value")));
  } else {
    EXPECT_EQ(*found.find("value"), *about.find("value"));
  }
}

/// Its containers, and leaves that are no arrays, stand in pickles.
class ForeignStructures : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignStructures, LoadWithTheirContainersAndValues) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const Json document = read_json(folder + "/expected.json");
  Runtime runtime;
  for (const auto& [prefix, about] : *document.find("tree")->object()) {
    SCOPED_TRACE("prefix " + prefix);
    const Loaded loaded = must(load(folder + "/checkpoint", {.prefix = prefix}, runtime));
    compare_kinds(loaded.tree, about);
    for (const Json& leaf : *document.find("leaves")->array()) {
      if (leaf.find("value") != nullptr && text_of(leaf, "prefix") == prefix)
        compare_value(loaded.tree, leaf);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ForeignStructures,
                         ::testing::Values("eformer_save_pytree_optax",
                                           "eformer_save_pytree_safetensors",
                                           "eformer_save_pytree_tensorstore"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(ForeignPrefixes, OneOfSeveralPrefixesMustBeNamed) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_save_tree");
  Runtime runtime;
  const auto loaded = load(folder + "/checkpoint", {}, runtime);
  ASSERT_EQ(reason(loaded), "load/prefix-ambiguous");
  EXPECT_NE(loaded.error().message().find("model, optimizer, tx"), std::string::npos)
      << loaded.error().message();
  EXPECT_EQ(reason(load(folder + "/checkpoint", {.prefix = "moddel"}, runtime)),
            "load/prefix-missing");
}

class ForeignRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignRuns, EachCheckpointLoads) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const Json document = read_json(folder + "/expected.json");
  Runtime runtime;
  for (const Json& run : *document.find("runs")->array()) {
    SCOPED_TRACE(text_of(run, "dir"));
    const auto loaded = must(load(folder + "/checkpoint/" + text_of(run, "dir"),
                                  {.prefix = text_of(run, "prefix")}, runtime));
    for (const auto& [key, about] : *run.find("arrays")->object()) {
      compare(loaded.tree, must(KeyPath::parse(key)), about);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ForeignRuns, ::testing::Values("eformer_run", "eformer_run_damaged"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(ForeignIndex, ThatIsCutOffIsSaidToBe) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run_damaged");
  Runtime runtime;
  EXPECT_EQ(reason(open_checkpoint(folder + "/checkpoint/run-15", runtime)), "index/bad-json");
}

// Elements as they lie in the file: packed where the format packs.
void compare_tensor(const OpenedPrefix& prefix, std::size_t which, const Json& leaf,
                    Runtime& runtime) {
  const format::StoredArray& stored = prefix.manifest.arrays[which].stored;
  EXPECT_EQ(*format::safetensors::dtype_string(stored.dtype), text_of(leaf, "st_dtype"));
  EXPECT_EQ(stored.shape, shape_of(*leaf.find("shape")));
  const Array array = must(load_box(prefix, which, Box::whole(stored.shape), runtime));
  if (!stored.packed) return compare_bytes(array.bytes(), leaf);
  const auto codec = must(format::ChunkCodec::make(stored));
  compare_bytes(must(codec.encode(array.bytes())).bytes(), leaf);
}

void compare_tensors(const std::string& path, const std::vector<const Json*>& leaves) {
  SCOPED_TRACE(path);
  Runtime runtime;
  const Checkpoint checkpoint = must(open_checkpoint(path, runtime));
  ASSERT_EQ(checkpoint.prefixes.size(), 1U);
  const OpenedPrefix& prefix = checkpoint.prefixes[0];
  EXPECT_EQ(prefix.names.size(), leaves.size());
  for (const Json* leaf : leaves) {
    SCOPED_TRACE(text_of(*leaf, "key"));
    const auto found = std::ranges::find(prefix.names, text_of(*leaf, "key"));
    ASSERT_NE(found, prefix.names.end());
    compare_tensor(prefix, static_cast<std::size_t>(found - prefix.names.begin()), *leaf, runtime);
  }
  EXPECT_EQ(must(load(checkpoint, {}, runtime)).report.loaded.size(), leaves.size());
}

class ForeignTensors : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignTensors, LoadFileByFile) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const Json document = read_json(folder + "/expected.json");
  std::map<std::string, std::vector<const Json*>> files;
  for (const Json& leaf : *document.find("leaves")->array()) {
    files[text_of(leaf, "file")].push_back(&leaf);
  }
  ASSERT_FALSE(files.empty());
  for (const auto& [file, leaves] : files) compare_tensors(folder + "/checkpoint/" + file, leaves);
}

INSTANTIATE_TEST_SUITE_P(, ForeignTensors,
                         ::testing::Values("safetensors_dtypes", "safetensors_headers",
                                           "safetensors_sharded", "eformer_safetensors",
                                           "eformer_safetensors_sharded"),
                         [](const auto& fixture) { return std::string(fixture.param); });

TEST(ForeignParts, LoadAsOneTreeByFolderAndByIndex) {
  for (const char* name : {"safetensors_sharded", "eformer_safetensors_sharded"}) {
    CAIRN_FIXTURE_OR_SKIP(folder, name);
    const Json document = read_json(folder + "/expected.json");
    std::vector<const Json*> leaves;
    for (const Json& leaf : *document.find("leaves")->array()) leaves.push_back(&leaf);
    compare_tensors(folder + "/checkpoint", leaves);
    compare_tensors(folder + "/checkpoint/model.safetensors.index.json", leaves);
  }
}

TEST(ForeignParts, AFolderWithoutAnIndexHasOneTreeForEachFile) {
  CAIRN_FIXTURE_OR_SKIP(folder, "safetensors_dtypes");
  Runtime runtime;
  const Checkpoint checkpoint = must(open_checkpoint(folder + "/checkpoint", runtime));
  ASSERT_EQ(checkpoint.prefixes.size(), 2U);
  EXPECT_EQ(checkpoint.prefixes[0].name, "model");
  EXPECT_EQ(checkpoint.prefixes[1].name, "sub_byte");
}

// What a user sees of a damaged checkpoint: the reason that refuses it, or the digest of the first
// array.
std::string outcome_of_user(const std::string& path, Runtime& runtime) {
  const auto checkpoint = open_checkpoint(path, runtime);
  if (!checkpoint) return std::string(checkpoint.error().reason());
  const auto loaded = load(*checkpoint, {}, runtime);
  if (!loaded) return std::string(loaded.error().reason());
  const auto first =
      load_box(checkpoint->prefixes[0], 0,
               Box::whole(checkpoint->prefixes[0].manifest.arrays[0].stored.shape), runtime);
  return first ? sha256_hex(first->bytes()) : std::string(first.error().reason());
}

// The same by the format alone, whose own test has the table of reasons.
std::string outcome_of_array(const std::string& path) {
  const auto store = must(storage::open_local_store(storage::posix_file_system(), path));
  const auto stored = format::open_array(*store, "");
  if (!stored) return std::string(stored.error().reason());
  const auto array = format::read_array(*store, *stored);
  return array ? sha256_hex(array->bytes()) : std::string(array.error().reason());
}

TEST(Damaged, ArraysAreRefusedAsTheirFormatRefusesThem) {
  CAIRN_FIXTURE_OR_SKIP(folder, "zarr2_malformed");
  const Json document = read_json(folder + "/malformed.json");
  Runtime runtime({.threads = 1});
  const testing::LittleMemory limit(256 * kMiB);
  std::size_t count = 0;
  for (const Json& damaged : *document.find("cases")->array()) {
    const std::string path = folder + "/" + text_of(damaged, "dir");
    SCOPED_TRACE(path);
    const std::string by_format = outcome_of_array(path);
    EXPECT_EQ(outcome_of_user(path, runtime),
              by_format == "format/no-array" ? "checkpoint/not-a-checkpoint" : by_format);
    ++count;
  }
  EXPECT_GT(count, 100U);
}

std::string refusal_of_parts(storage::Store& store, const std::string& path) {
  namespace st = format::safetensors;
  if (path.ends_with(".safetensors")) {
    const auto header = st::read_header(store, path);
    return header ? "" : std::string(header.error().reason());
  }
  const auto index = st::read_index(store, path + "/model.safetensors.index.json");
  if (!index) return std::string(index.error().reason());
  const auto parts = st::read_parts(store, path, *index);
  return parts ? "" : std::string(parts.error().reason());
}

TEST(Damaged, FilesAndSetsAreRefusedAsTheirFormatRefusesThem) {
  CAIRN_FIXTURE_OR_SKIP(folder, "safetensors_malformed");
  const auto store = must(storage::open_local_store(storage::posix_file_system(), folder));
  const Json document = read_json(folder + "/malformed.json");
  Runtime runtime({.threads = 1});
  const testing::LittleMemory limit(256 * kMiB);
  std::size_t refused = 0;
  for (const Json& damaged : *document.find("cases")->array()) {
    const std::string& path = text_of(damaged, "file");
    SCOPED_TRACE(path);
    const std::string by_format = refusal_of_parts(*store, path);
    const auto opened = open_checkpoint(folder + "/" + path, runtime);
    if (path.find("wrong_magic_") != std::string::npos) {
      EXPECT_TRUE(reason(opened).starts_with("stranger/"));
    } else {
      EXPECT_EQ(reason(opened), by_format.empty() ? "none" : by_format);
    }
    if (opened) {
      EXPECT_EQ(reason(load(*opened, {.prefix = opened->prefixes[0].name}, runtime)), "none");
    } else {
      ++refused;
    }
  }
  EXPECT_GT(refused, 80U);
}

}  // namespace
}  // namespace cairn
