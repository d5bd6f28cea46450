// SPDX-License-Identifier: Apache-2.0
// The checkpoints that tests/cli looks at, in both layouts; samples.py says what is in them.
//
//   cairn_make_checkpoints DIRECTORY
#include <cstring>
#include <iostream>
#include <numeric>

#include "cairn/cairn.h"
#include "cairn/save/save_internals.h"

namespace {

template <typename T>
cairn::Result<cairn::Tree> counting(cairn::DType dtype, cairn::Shape shape, T first) {
  CAIRN_TRY_ASSIGN(auto array, cairn::Array::allocate(dtype, std::move(shape)));
  std::vector<T> numbers(array.elements());
  std::iota(numbers.begin(), numbers.end(), first);
  std::memcpy(array.mutable_data(), numbers.data(), array.nbytes());
  return cairn::Tree(std::move(array));
}

cairn::Result<cairn::Tree> model() {
  CAIRN_TRY_ASSIGN(auto kernel, counting<float>(cairn::DType::kFloat32, {6, 8}, 0));
  // Counting in bits: 1.0 is 0x3f80.
  CAIRN_TRY_ASSIGN(auto half, counting<std::uint16_t>(cairn::DType::kBfloat16, {2, 5}, 0x3f80));
  CAIRN_TRY_ASSIGN(auto empty, cairn::Array::zeros(cairn::DType::kInt16, {0, 4}));
  return cairn::Tree::dict({
      {"kernel", std::move(kernel)},
      {"layers", cairn::Tree::list({std::move(half)})},
      {"empty", std::move(empty)},
      {"config", cairn::Tree::dict({{"name", cairn::Value("tiny \"one\"")},
                                    {"rate", cairn::Value(0.5)},
                                    {"steps", cairn::Value(cairn::Integer(1000))}})},
  });
}

cairn::Result<cairn::Tree> optimizer() {
  CAIRN_TRY_ASSIGN(auto kernel, counting<double>(cairn::DType::kFloat64, {6, 8}, -5));
  CAIRN_TRY_ASSIGN(auto count, counting<std::int64_t>(cairn::DType::kInt64, {}, 41));
  return cairn::Tree::dict({{"kernel", std::move(kernel)}, {"count", std::move(count)}});
}

cairn::Result<void> run(const std::string& directory) {
  cairn::Runtime runtime;
  CAIRN_TRY_ASSIGN(const cairn::Tree first, model());
  CAIRN_TRY_ASSIGN(const cairn::Tree second, optimizer());
  for (const char* layout : {"zarr2", "safetensors"}) {
    cairn::SaveOptions options{.layout = layout, .step = 1000};
    options.chunk_bytes = 64;
    CAIRN_TRY(cairn::save_checkpoint({{"model", first}, {"optimizer", second}},
                                     directory + "/" + layout, options, runtime));
  }
  const cairn::Tree flags =
      cairn::Tree::list(std::vector<cairn::Tree>(11, cairn::Tree(cairn::Value(true))));
  CAIRN_TRY(cairn::save_tree(flags, directory + "/flags", {}, runtime));
  for (const int step : {9, 10}) {
    cairn::SaveInternals marked;
    marked.mark = R"({"step": )" + std::to_string(step) +
                  R"(, "timestamp": "2026-01-02T03:04:05", "is_temporary": false})";
    CAIRN_TRY(cairn::save_checkpoint({{"optimizer", second}},
                                     directory + "/run/run-" + std::to_string(step), {.step = step},
                                     runtime, &marked));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run(argc == 2 ? argv[1] : ".");
  if (!done) std::cerr << done.error().to_string() << '\n';
  return done ? 0 : 1;
}
