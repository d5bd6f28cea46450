// SPDX-License-Identifier: Apache-2.0
// Arrays that JAX, TensorStore, zarr-python, eformer and Orbax wrote, byte for byte.
#include "cairn/testing/fixtures.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "cairn/base/base64.h"
#include "cairn/base/json.h"
#include "cairn/base/sha256.h"
#include "cairn/format/open.h"
#include "cairn/format/read_array.h"
#include "cairn/format/zarr2/metadata.h"
#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::format::zarr2 {
namespace {

struct Expected {
  std::string directory;
  const Json* about = nullptr;  // dtype, shape, nbytes, sha256, first, last
};

// Leaves of a checkpoint, and the arrays of each checkpoint of a run.
std::vector<Expected> expected_arrays(const Json& document) {
  std::vector<Expected> all;
  for (const Json& leaf : *document.find("leaves")->array()) {
    if (const Json* directory = leaf.find("array")) all.push_back({*directory->text(), &leaf});
  }
  const Json* runs = document.find("runs");
  if (runs == nullptr) return all;
  for (const Json& run : *runs->array()) {
    for (const auto& [name, about] : *run.find("arrays")->object()) {
      all.push_back(
          {*run.find("dir")->text() + "/" + *run.find("prefix")->text() + "/" + name, &about});
    }
  }
  return all;
}

std::size_t count_arrays(storage::Store& store) {
  const auto entries = store.list("", true);
  EXPECT_TRUE(entries.has_value());
  return static_cast<std::size_t>(std::ranges::count_if(
      *entries, [](const storage::ListEntry& entry) { return entry.key.ends_with("/.zarray"); }));
}

Shape shape_of(const Json& sizes) {
  Shape shape;
  for (const Json& size : *sizes.array()) shape.push_back(*size.integer());
  return shape;
}

void compare(storage::Store& store, const Expected& expected) {
  SCOPED_TRACE(expected.directory);
  const auto stored = open_array(store, expected.directory);
  ASSERT_TRUE(stored) << stored.error().to_string();
  EXPECT_EQ(dtype_name(stored->dtype), *expected.about->find("dtype")->text());
  EXPECT_EQ(stored->shape, shape_of(*expected.about->find("shape")));
  if (const Json* chunks = expected.about->find("chunks")) {
    EXPECT_EQ(stored->chunk_shape, shape_of(*chunks));
  }
  const auto array = read_array(store, *stored);
  ASSERT_TRUE(array) << array.error().to_string();
  const ByteSpan bytes = array->bytes();
  const std::size_t four = std::min(bytes.size(), 4 * item_size(array->dtype()));
  EXPECT_EQ(bytes.size(), *expected.about->find("nbytes")->unsigned_integer());
  EXPECT_EQ(encode_hex(bytes.first(four)), *expected.about->find("first")->text());
  EXPECT_EQ(encode_hex(bytes.last(four)), *expected.about->find("last")->text());
  EXPECT_EQ(sha256_hex(bytes), *expected.about->find("sha256")->text());
}

class Zarr2Fixtures : public ::testing::TestWithParam<const char*> {};

TEST_P(Zarr2Fixtures, ReadToTheExpectedBytes) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const auto document = parse_json(testing::read_file(folder + "/expected.json"));
  ASSERT_TRUE(document);
  const auto store =
      storage::open_local_store(storage::posix_file_system(), folder + "/checkpoint");
  ASSERT_TRUE(store) << store.error().to_string();
  const std::vector<Expected> arrays = expected_arrays(*document);
  // Each damaged checkpoint of a run has one array, which is somebody else's to judge.
  const Json* damaged = document->find("damaged");
  EXPECT_EQ(arrays.size() + (damaged == nullptr ? 0 : damaged->object()->size()),
            count_arrays(**store))
      << "arrays that nobody compares";
  ASSERT_FALSE(arrays.empty());
  for (const Expected& expected : arrays) compare(**store, expected);
}

class TensorStoreTexts : public ::testing::TestWithParam<const char*> {};

TEST_P(TensorStoreTexts, AreWrittenAgainByteForByte) {
  CAIRN_FIXTURE_OR_SKIP(folder, GetParam());
  const auto store =
      storage::open_local_store(storage::posix_file_system(), folder + "/checkpoint");
  ASSERT_TRUE(store) << store.error().to_string();
  const auto entries = (*store)->list("", true);
  ASSERT_TRUE(entries);
  int compared = 0;
  for (const storage::ListEntry& entry : *entries) {
    // The fixture's authors spelled the metadata of these arrays by hand.
    if (entry.key.starts_with("text_") || entry.key.starts_with("typestr_")) continue;
    if (!entry.key.ends_with("/.zarray")) continue;
    const auto text = storage::read_all(**store, entry.key, kMaxMetadataBytes);
    ASSERT_TRUE(text);
    const auto array = parse_metadata(as_text(text->bytes()));
    ASSERT_TRUE(array) << entry.key;
    EXPECT_EQ(*dump_metadata(*array), as_text(text->bytes())) << entry.key;
    ++compared;
  }
  EXPECT_GT(compared, 10);
}

INSTANTIATE_TEST_SUITE_P(, TensorStoreTexts,
                         ::testing::Values("zarr2_jax_dtypes", "zarr2_jax_ranks",
                                           "zarr2_jax_sharded", "zarr2_tensorstore_codecs",
                                           "zarr2_tensorstore_layouts", "orbax_plain_zarr2"),
                         [](const auto& fixture) { return std::string(fixture.param); });

INSTANTIATE_TEST_SUITE_P(
    , Zarr2Fixtures,
    ::testing::Values("zarr2_jax_dtypes", "zarr2_jax_ranks", "zarr2_jax_sharded",
                      "zarr2_old_frames", "zarr2_tensorstore_codecs", "zarr2_tensorstore_layouts",
                      "zarr2_zarrpython_codecs", "zarr2_zarrpython_layouts", "orbax_plain_zarr2",
                      "eformer_index_v1", "eformer_no_index", "eformer_run", "eformer_run_damaged",
                      "eformer_save_pytree_optax", "eformer_save_pytree_safetensors",
                      "eformer_save_pytree_tensorstore", "eformer_save_tree",
                      "eformer_save_tree_no_prefix", "eformer_save_tree_values"),
    [](const auto& fixture) { return std::string(fixture.param); });

}  // namespace
}  // namespace cairn::format::zarr2
