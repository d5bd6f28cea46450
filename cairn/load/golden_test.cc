// SPDX-License-Identifier: Apache-2.0
// Checkpoints of every past format must load for ever: tests/golden/v<format>/ holds one tree in
// each layout. CAIRN_WRITE_GOLDEN=1 writes the folder of the present format, once, when a format is
// new.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/inspect/verify.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/random_tree.h"

namespace cairn {
namespace {

Array counting(DType dtype, const Shape& shape) {
  Array array = *Array::zeros(dtype, shape);
  std::uint8_t next = 1;
  for (std::byte& byte : array.mutable_bytes()) byte = std::byte{next++};
  return array;
}

// Fixed for ever: what the golden files hold.
Tree golden_tree() {
  return Tree::dict(
      {{"params", Tree::list({counting(DType::kFloat32, {3, 5}), counting(DType::kBfloat16, {4})})},
       {"odd.key/%", counting(DType::kInt64, {})},
       {"none", Tree::none()},
       {"empty", counting(DType::kFloat16, {0, 2})},
       {3, Tree::tuple({Value(Integer(-7)), Value(2.5), Value(std::string("text")),
                        Value(Bytes{"\x00\xff"})})},
       {"state", Tree::named_tuple("optax:ScaleByAdamState", {{"mu", counting(DType::kUint8, {7})},
                                                              {"count", Value(true)}})}});
}

struct Golden {
  const char* name;
  std::string layout;
  bool compress;
};

void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name; }

class GoldenFiles : public ::testing::TestWithParam<Golden> {
 protected:
  std::string folder() const { return testing::source_path("tests/golden/v1/"); }
};

TEST_P(GoldenFiles, LoadForEver) {
  Runtime runtime;
  const std::string path = folder() + GetParam().name;
  if (std::getenv("CAIRN_WRITE_GOLDEN") != nullptr) {
    SaveOptions options{.layout = GetParam().layout};
    options.enable_compression = GetParam().compress;
    options.enable_validation = true;
    options.chunk_bytes = 24;
    options.shard_size = 40;
    options.step = 42;
    options.metadata = Json(Json::Object{{"run", "golden"}});
    ASSERT_TRUE(save_tree(golden_tree(), path, options, runtime, "model"));
    std::error_code none;
    std::filesystem::remove(path + "/.cairn-lock", none);
  }
  const auto loaded = load(path, {.validate = true}, runtime);
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  EXPECT_EQ(testing::difference(loaded->tree, golden_tree()), "");
  EXPECT_EQ(*loaded->metadata.find("run")->text(), "golden");
  EXPECT_TRUE(loaded->report.unchecked.empty());
  const auto report = verify(*open_checkpoint(path, runtime), {}, runtime);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->damages.empty());
}

INSTANTIATE_TEST_SUITE_P(
    V1, GoldenFiles,
    ::testing::Values(Golden{"zarr2", "zarr2", false}, Golden{"zarr2_zstd", "zarr2", true},
                      Golden{"safetensors", "safetensors", false},
                      Golden{"bare.safetensors", "safetensors", false}),
    [](const auto& test) {
      return std::string(test.param.name).substr(0, test.param.name[4] == '.' ? 4 : 99);
    });

}  // namespace
}  // namespace cairn
