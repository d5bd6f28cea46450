// SPDX-License-Identifier: Apache-2.0
// cairn_demo_train RUN STEP WIDTH: what a training job does about checkpoints. Takes up the latest
// one of the run if there is one, changes its weights, and saves model and optimizer as one.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cairn/base/human.h"
#include "cairn/cairn.h"

namespace {

using cairn::Array;
using cairn::DType;
using cairn::Result;
using cairn::Tree;

Result<Array> random_weights(cairn::Shape shape, unsigned seed) {
  CAIRN_TRY_ASSIGN(Array array, Array::allocate(DType::kFloat32, std::move(shape)));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> pool(4096);
  for (float& weight : pool) weight = normal(random);
  // Drawn from a pool: making numbers should not take longer than saving them.
  std::uint32_t state = seed;
  auto* const first = reinterpret_cast<float*>(array.mutable_data());
  for (float& weight : std::span(first, array.elements())) {
    state = state * 1664525 + 1013904223;
    weight = pool[state >> 20U];
  }
  return array;
}

Result<Tree> make_layers(cairn::Index width, unsigned seed) {
  std::vector<Tree> layers;
  for (unsigned i = 0; i < 4; ++i) {
    CAIRN_TRY_ASSIGN(Array kernel, random_weights({width, width}, seed + i));
    CAIRN_TRY_ASSIGN(Array bias, random_weights({width}, seed + i + 100));
    layers.push_back(Tree::dict({{"kernel", kernel}, {"bias", bias}}));
  }
  return Tree::dict({{"layers", Tree::list(std::move(layers))}});
}

std::string mark(std::int64_t step) {
  return "{\"step\": " + std::to_string(step) + ", \"timestamp\": \"" +
         cairn::format_timestamp(cairn::system_clock().wall()) + "\", \"is_temporary\": false}";
}

Result<void> take_up_latest(const std::string& run, cairn::Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto latest, cairn::find_latest_checkpoint(run, runtime));
  if (!latest) {
    std::printf("no checkpoint yet: starting from scratch\n");
    return {};
  }
  CAIRN_TRY_ASSIGN(const auto loaded, cairn::load(*latest, {.prefix = "model"}, runtime));
  std::printf("took up %s: %s\n", latest->c_str(),
              cairn::format_bytes(loaded.report.bytes).c_str());
  return {};
}

Result<void> train(const std::string& run, std::int64_t step, cairn::Index width) {
  cairn::Runtime runtime;
  CAIRN_TRY(take_up_latest(run, runtime));
  const auto seed = static_cast<unsigned>(step);
  CAIRN_TRY_ASSIGN(Tree params, make_layers(width, seed));
  CAIRN_TRY_ASSIGN(Tree moments, make_layers(width, seed + 1000));
  const Tree optimizer =
      Tree::dict({{"count", cairn::Value(cairn::Integer(step))}, {"mu", std::move(moments)}});

  cairn::SaveOptions options;
  options.step = step;
  options.mark = mark(step);
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 0) std::printf("saving ...\n");
    std::fflush(stdout);
  };
  const std::string path = run + "/run-" + std::to_string(step);
  CAIRN_TRY_ASSIGN(const auto report,
                   cairn::save_checkpoint({{"model", std::move(params)}, {"optimizer", optimizer}},
                                          path, options, runtime));
  std::printf("saved %s: %s\n", path.c_str(), cairn::format_bytes(report.bytes).c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: cairn_demo_train RUN STEP WIDTH\n");
    return 2;
  }
  const auto done = train(argv[1], std::atoll(argv[2]), std::atoll(argv[3]));
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  return done ? 0 : 1;
}
