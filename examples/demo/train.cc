// SPDX-License-Identifier: Apache-2.0
// cairn_demo_train JOB STEP [--wait-halfway]: what a training job does about checkpoints. Takes up
// the latest one of the job, trains to STEP, and saves its state as zarr v2 and as safetensors.
// With --wait-halfway it stops in the middle of the first save, until somebody kills it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "cairn/array/cast.h"
#include "cairn/base/human.h"
#include "cairn/base/progress_bar.h"
#include "cairn/cairn.h"

namespace {

using cairn::Array;
using cairn::DType;
using cairn::Result;
using cairn::Tree;

struct Optimizer {
  std::int64_t step = 0;
  double learning_rate = 3e-4;
  std::vector<double> betas = {0.9, 0.95};
};

template <typename Visitor>
void cairn_visit(Visitor& v, Optimizer& optimizer) {
  v("step", optimizer.step);
  v("learning_rate", optimizer.learning_rate);
  v("betas", optimizer.betas);
}

struct State {
  Tree model;
  Optimizer optimizer;
};

std::span<std::uint16_t> bits_of(Array& weights) {
  return {reinterpret_cast<std::uint16_t*>(weights.mutable_data()), weights.elements()};
}

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
    for (std::uint16_t& weight : bits_of(array)) weight = pool_[random_() % kPool];
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

Result<State> take_up_latest(const std::string& run, cairn::Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto latest, cairn::find_latest_checkpoint(run, runtime));
  State state{Tree::none(), {}};
  if (!latest) {
    std::printf("no checkpoint yet: starting from scratch\n");
    CAIRN_TRY_ASSIGN(state.model, make_model());
    return state;
  }
  CAIRN_TRY_ASSIGN(auto model, cairn::load(*latest, {.prefix = "model"}, runtime));
  CAIRN_TRY_ASSIGN(const auto optimizer, cairn::load(*latest, {.prefix = "optimizer"}, runtime));
  CAIRN_TRY(cairn::from_tree(optimizer.tree, state.optimizer));
  state.model = std::move(model.tree);
  std::printf("resuming from step %jd: %s, %s\n", std::intmax_t{state.optimizer.step},
              latest->c_str(), cairn::format_bytes(model.report.bytes).c_str());
  return state;
}

// Not much of a training: each weight moves by its last bit.
Result<void> train_to(std::int64_t step, State& state) {
  CAIRN_TRY_ASSIGN(const auto leaves, cairn::flatten(state.model));
  for (const cairn::NamedLeaf& leaf : leaves) {
    Array weights = std::get<cairn::ShardedArray>(leaf.leaf).array();
    for (std::uint16_t& weight : bits_of(weights)) weight ^= 1;
  }
  state.optimizer.step = step;
  return {};
}

cairn::ProgressSink progress_bar(const std::string& what, bool wait_halfway) {
  const auto bar = std::make_shared<cairn::ProgressBar>(
      what, cairn::ProgressStyle{.terminal = ::isatty(STDOUT_FILENO) == 1, .lines = 4});
  return [bar, wait_halfway](std::uint64_t done, std::uint64_t total) {
    std::fputs(bar->update(done, total).c_str(), stdout);
    const bool wait = wait_halfway && done >= total / 2;
    if (wait) std::printf("halfway\n");
    std::fflush(stdout);
    while (wait) ::pause();
  };
}

Result<void> save(const State& state, const std::string& job, std::string_view layout,
                  bool wait_halfway, cairn::Runtime& runtime) {
  const std::string step = std::to_string(state.optimizer.step);
  const std::string path = job + "/" + std::string(layout) + "/run-" + step;
  cairn::SaveOptions options;
  options.layout = layout;
  options.step = state.optimizer.step;
  options.mark = "{\"step\": " + step + ", \"timestamp\": \"" +
                 cairn::format_timestamp(runtime.clock().wall()) + "\", \"is_temporary\": false}";
  options.progress = progress_bar(options.layout, wait_halfway);
  std::printf("saving %s\n", path.c_str());
  CAIRN_TRY(cairn::save_checkpoint(
      {{"model", state.model}, {"optimizer", cairn::to_tree(state.optimizer)}}, path, options,
      runtime));
  return {};
}

Result<void> run_job(const std::string& job, std::int64_t step, bool wait_halfway) {
  cairn::Runtime runtime;
  CAIRN_TRY_ASSIGN(State state, take_up_latest(job + "/zarr2", runtime));
  CAIRN_TRY(train_to(step, state));
  CAIRN_TRY(save(state, job, cairn::kZarr2Layout, wait_halfway, runtime));
  return save(state, job, cairn::kSafetensorsLayout, false, runtime);
}

}  // namespace

int main(int argc, char** argv) {
  const bool wait_halfway = argc == 4 && std::string_view(argv[3]) == "--wait-halfway";
  if (argc != 3 && !wait_halfway) {
    std::fprintf(stderr, "usage: cairn_demo_train JOB STEP [--wait-halfway]\n");
    return 2;
  }
  const auto done = run_job(argv[1], std::atoll(argv[2]), wait_halfway);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? 0 : 1;
}
