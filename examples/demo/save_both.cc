// SPDX-License-Identifier: Apache-2.0
// cairn_demo_save DIR: saves a small llama in bfloat16 twice, as DIR/zarr2 and as DIR/safetensors,
// each with a progress bar.
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cairn/array/cast.h"
#include "cairn/base/progress_bar.h"
#include "cairn/cairn.h"

namespace {

using cairn::Array;
using cairn::DType;
using cairn::Result;
using cairn::Tree;

// Weights that a generator draws from a pool: making them must not take longer than saving them.
class Initializer {
 public:
  Initializer() {
    std::normal_distribution<float> normal(0.0F, 0.02F);
    std::vector<float> pool(kPool);
    for (float& weight : pool) weight = normal(random_);
    cairn::cast_elements(DType::kFloat32, std::as_bytes(std::span(pool)), DType::kBfloat16,
                         std::as_writable_bytes(std::span(pool_)));
  }

  Result<Array> operator()(cairn::Shape shape) {
    CAIRN_TRY_ASSIGN(Array array, Array::allocate(DType::kBfloat16, std::move(shape)));
    auto* weights = reinterpret_cast<std::uint16_t*>(array.mutable_data());
    for (std::uint16_t& weight : std::span(weights, array.elements()))
      weight = pool_[random_() % kPool];
    return array;
  }

 private:
  static constexpr std::size_t kPool = 4096;
  std::minstd_rand random_{42};
  std::vector<std::uint16_t> pool_ = std::vector<std::uint16_t>(kPool);
};

Result<Tree> make_dict(std::vector<std::pair<const char*, cairn::Shape>> members,
                       Initializer& init) {
  Tree dict = Tree::dict();
  for (auto& [name, shape] : members) {
    CAIRN_TRY_ASSIGN(Array weights, init(std::move(shape)));
    dict.set(name, std::move(weights));
  }
  return dict;
}

Result<Tree> make_model() {
  constexpr cairn::Index kVocabulary = 8192;
  constexpr cairn::Index kWidth = 512;
  constexpr cairn::Index kHidden = 1408;
  Initializer init;
  std::vector<Tree> layers;
  for (int i = 0; i < 4; ++i) {
    CAIRN_TRY_ASSIGN(Tree layer,
                     make_dict({{"input_norm", {kWidth}}, {"mlp_norm", {kWidth}}}, init));
    CAIRN_TRY_ASSIGN(Tree attention, make_dict({{"q", {kWidth, kWidth}},
                                                {"k", {kWidth, kWidth}},
                                                {"v", {kWidth, kWidth}},
                                                {"o", {kWidth, kWidth}}},
                                               init));
    CAIRN_TRY_ASSIGN(Tree mlp, make_dict({{"gate", {kWidth, kHidden}},
                                          {"up", {kWidth, kHidden}},
                                          {"down", {kHidden, kWidth}}},
                                         init));
    layer.set("attention", std::move(attention));
    layer.set("mlp", std::move(mlp));
    layers.push_back(std::move(layer));
  }
  CAIRN_TRY_ASSIGN(Tree model,
                   make_dict({{"embed", {kVocabulary, kWidth}}, {"norm", {kWidth}}}, init));
  model.set("layers", Tree::list(std::move(layers)));
  return model;
}

cairn::ProgressSink progress_bar(const std::string& what) {
  const auto bar = std::make_shared<cairn::ProgressBar>(
      what, cairn::ProgressStyle{.terminal = ::isatty(STDOUT_FILENO) == 1, .lines = 4});
  return [bar](std::uint64_t done, std::uint64_t total) {
    std::fputs(bar->update(done, total).c_str(), stdout);
    std::fflush(stdout);
  };
}

Result<void> save_both(const std::string& directory) {
  cairn::Runtime runtime;
  CAIRN_TRY_ASSIGN(const Tree model, make_model());
  for (const std::string_view layout : {cairn::kZarr2Layout, cairn::kSafetensorsLayout}) {
    cairn::SaveOptions options;
    options.layout = layout;
    options.progress = progress_bar(options.layout);
    CAIRN_TRY(cairn::save_tree(model, directory + "/" + options.layout, options, runtime, "model"));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cairn_demo_save DIR\n");
    return 2;
  }
  const auto done = save_both(argv[1]);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? 0 : 1;
}
