// SPDX-License-Identifier: Apache-2.0
// How long a caller is kept by an asynchronous save, against one copy of the same bytes into warm
// memory in the same run; and what a step costs that saves nothing.
//
//   cairn_stall [--quick]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "bench/weights.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using SteadyClock = std::chrono::steady_clock;

double seconds(SteadyClock::time_point since) {
  return std::chrono::duration<double>(SteadyClock::now() - since).count();
}

struct State {
  std::vector<std::vector<std::byte>> memory;
  Tree changing = Tree::none();
  Tree lent = Tree::none();
  std::size_t bytes = 0;
};

/// Like a language model in bfloat16: an embedding, and layers of a few matrices and small vectors.
State llama_like(std::size_t layers) {
  State state;
  std::vector<Shape> shapes{{8192, 1024}};
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (int i = 0; i < 4; ++i) shapes.push_back({1024, 1024});
    for (int i = 0; i < 3; ++i) shapes.push_back({1024, 2816});
    shapes.push_back({1024});
  }
  const std::vector<std::byte> pattern = bench::bfloat16_weights(16 * kMiB);
  std::vector<std::pair<Key, Tree>> changing;
  std::vector<std::pair<Key, Tree>> lent;
  state.memory.reserve(shapes.size());
  for (const Shape& shape : shapes) {
    const std::size_t bytes = Box::whole(shape).elements() * 2;
    auto& memory = state.memory.emplace_back(pattern.begin(),
                                             pattern.begin() + static_cast<std::ptrdiff_t>(bytes));
    const std::string name = "p" + std::to_string(changing.size());
    changing.emplace_back(
        name, must(Array::wrap(DType::kBfloat16, shape, Buffer::borrow(memory, nullptr))));
    lent.emplace_back(name,
                      must(Array::wrap(DType::kBfloat16, shape, Buffer::lend(memory, nullptr))));
    state.bytes += bytes;
  }
  state.changing = Tree::dict(std::move(changing));
  state.lent = Tree::dict(std::move(lent));
  return state;
}

double copy_once(const State& state, std::vector<std::byte>& to) {
  const auto start = SteadyClock::now();
  std::size_t at = 0;
  for (const auto& memory : state.memory) {
    std::memcpy(to.data() + at, memory.data(), memory.size());
    at += memory.size();
  }
  return seconds(start);
}

/// Waits for the commit, outside the time.
double stall(AsyncCheckpointManager& manager, const Tree& tree, const std::string& path) {
  const auto start = SteadyClock::now();
  const auto handle = must(manager.save_tree(tree, path));
  const double spent = seconds(start);
  must(handle.wait());
  std::filesystem::remove_all(path);
  return spent;
}

void measure_stalls(bool quick) {
  const State state = llama_like(quick ? 8 : 40);
  testing::TempDir dir;
  AsyncCheckpointManager manager({}, std::make_shared<Runtime>());
  std::vector<std::byte> to(state.bytes);
  copy_once(state, to);
  const double cold = stall(manager, state.changing, dir / "c");
  double copy = 1e9;
  double changing = 1e9;
  double lent = 1e9;
  for (int round = 0; round < (quick ? 3 : 9); ++round) {
    copy = std::min(copy, copy_once(state, to));
    changing = std::min(changing, stall(manager, state.changing, dir / "c"));
    lent = std::min(lent, stall(manager, state.lent, dir / "c"));
  }
  const double gigabytes = static_cast<double>(state.bytes) / 1e9;
  std::printf("\nstall of the caller, %.2f GB in %zu arrays\n", gigabytes, state.memory.size());
  std::printf("  one memcpy, warm                 %8.2f ms  %.1f GB/s\n", copy * 1e3,
              gigabytes / copy);
  std::printf("  save, arrays that may change     %8.2f ms  %.2f of it (bar 1.10)\n",
              changing * 1e3, changing / copy);
  std::printf("  save, arrays that are lent       %8.2f ms  %.3f of it (bar 0.020)\n", lent * 1e3,
              lent / copy);
  std::printf("  the first save, memory untouched %8.2f ms\n", cold * 1e3);
}

void measure_steps() {
  testing::TempDir dir;
  const auto run = must(Checkpointer::make({.base_path = dir / "run",
                                            .save_interval = std::chrono::hours(1),
                                            .step_policies = {{.every = 1'000'000'000}}},
                                           std::make_shared<Runtime>()));
  const Tree tree = Tree::dict({});
  constexpr int kSteps = 200'000;
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const auto start = SteadyClock::now();
    for (int step = 1; step <= kSteps; ++step) must(run->on_step(step, tree));
    best = std::min(best, seconds(start) / kSteps);
  }
  std::printf("on_step() that saves nothing       %8.0f ns  (bar 2,000)\n", best * 1e9);
}

}  // namespace
}  // namespace cairn

int main(int count, char** arguments) {
  const bool quick = count > 1 && std::string_view(arguments[1]) == "--quick";
  cairn::measure_stalls(quick);
  cairn::measure_steps();
}
