// SPDX-License-Identifier: Apache-2.0
// The state of a training job lives in structs of your own. One small function a struct names the
// members; that is all Cairn needs to save it and to bring it back.
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "cairn/cairn.h"

namespace model {

struct Layer {
  cairn::Array kernel, bias;
};

struct State {
  std::int64_t step = 0;
  double learning_rate = 0;
  std::string run;
  std::vector<Layer> layers;
  std::map<std::string, cairn::Array> moments;
};

template <typename Visitor>
void cairn_visit(Visitor& v, Layer& layer) {
  v("kernel", layer.kernel);
  v("bias", layer.bias);
}

template <typename Visitor>
void cairn_visit(Visitor& v, State& state) {
  v("step", state.step);
  v("learning_rate", state.learning_rate);
  v("run", state.run);
  v("layers", state.layers);
  v("moments", state.moments);
}

}  // namespace model

namespace {

cairn::Result<model::State> make_state() {
  model::State state{
      .step = 1000, .learning_rate = 3e-4, .run = "first try", .layers = {}, .moments = {}};
  for (int i = 0; i < 2; ++i) {
    CAIRN_TRY_ASSIGN(auto kernel, cairn::Array::zeros(cairn::DType::kBfloat16, {8, 4}));
    CAIRN_TRY_ASSIGN(auto bias, cairn::Array::zeros(cairn::DType::kFloat32, {4}));
    state.layers.push_back({std::move(kernel), std::move(bias)});
  }
  CAIRN_TRY_ASSIGN(state.moments["adam.mu"], cairn::Array::zeros(cairn::DType::kFloat32, {8, 4}));
  return state;
}

std::string describe(const cairn::Leaf& leaf) {
  if (const auto* value = std::get_if<cairn::Value>(&leaf)) return cairn::value_to_text(*value);
  const auto& array = std::get<cairn::ShardedArray>(leaf);
  return std::string(cairn::dtype_name(array.dtype())) + " " + cairn::to_string(array.shape());
}

cairn::Result<void> save(const model::State& state, const std::string& path) {
  cairn::Runtime runtime;
  CAIRN_TRY_ASSIGN(const auto report, cairn::save_tree(cairn::to_tree(state), path, {}, runtime));
  std::cout << "saved " << report.arrays << " arrays\n";
  return {};
}

cairn::Result<cairn::Tree> load(const std::string& path, model::State& state) {
  cairn::Runtime runtime;
  CAIRN_TRY_ASSIGN(auto loaded, cairn::load(path, {}, runtime));
  CAIRN_TRY(cairn::from_tree(loaded.tree, state));
  return std::move(loaded.tree);
}

cairn::Result<void> run(const std::string& path) {
  CAIRN_TRY_ASSIGN(const model::State state, make_state());
  CAIRN_TRY(save(state, path));
  model::State restored;
  CAIRN_TRY_ASSIGN(const cairn::Tree tree, load(path, restored));

  CAIRN_TRY_ASSIGN(const auto leaves, cairn::flatten(tree));
  for (const auto& [key, leaf] : leaves) std::cout << key.text() << " = " << describe(leaf) << '\n';
  std::cout << "restored step " << restored.step << " with " << restored.layers.size()
            << " layers\n";

  // A tree that does not fit is refused by name, before any training step runs on half a state.
  cairn::Tree other = tree;
  other.set("step", cairn::Tree(cairn::Value("1000")));
  const auto refused = cairn::from_tree(other, restored);
  std::cout << "refused: " << (refused ? "nothing" : refused.error().to_string()) << '\n';
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const auto done = run(argc > 1 ? argv[1] : "struct_as_tree");
  if (!done) std::cerr << done.error().to_string() << '\n';
  return done ? 0 : 1;
}
