// SPDX-License-Identifier: Apache-2.0
// What a load onto another layout costs. `reshard save DIR SIZE` is followed by `reshard load DIR
// SIZE TIMES`: eight ranks, as threads, save a model by rows; then it is loaded onto the same and
// onto other layouts, in turn, into memory that is there. bench/ranks.py prints the ratios.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/weights.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/load_plan.h"
#include "cairn/save/save.h"
#include "cairn/storage/forwarding_store.h"
#include "cairn/testing/must.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/tree/flatten.h"

namespace {

using cairn::testing::must;

constexpr int kSavers = 8;

struct Layout {
  const char* name;
  int ranks;
  std::vector<cairn::MeshAxis> axes;
  cairn::PartitionSpec spec;  // of matrices
};

std::vector<Layout> layouts() {
  return {{"8 x 1, as saved", 8, {{"x", 8}}, {{"x"}}},
          {"4 x 1", 4, {{"x", 4}}, {{"x"}}},
          {"16 x 1", 16, {{"x", 16}}, {{"x"}}},
          {"3 x 1", 3, {{"x", 3}}, {{"x"}}},
          {"1 x 8", 8, {{"x", 8}}, {{}, {"x"}}},
          {"2 x 4", 8, {{"x", 2}, {"y", 4}}, {{"x"}, {"y"}}},
          {"1 x 3", 3, {{"x", 3}}, {{}, {"x"}}}};
}

struct Leaf {
  std::string name;
  cairn::Array whole;
};

cairn::Array weights(const cairn::Shape& shape) {
  static const std::vector<std::byte> some = cairn::bench::bfloat16_weights(8 * cairn::kMiB - 2);
  cairn::Array array = must(cairn::Array::allocate(cairn::DType::kBfloat16, shape));
  for (std::size_t at = 0; at < array.nbytes(); at += some.size()) {
    std::memcpy(array.mutable_data() + at, some.data(), std::min(some.size(), array.nbytes() - at));
  }
  return array;
}

/// A layer and the embedding of a model whose sizes divide by 3 as well.
std::vector<Leaf> model(const std::string& size) {
  const cairn::Index hidden = 3072;
  const cairn::Index inner = size == "small" ? hidden : 3 * hidden;
  const cairn::Index words = size == "small" ? hidden : 8 * hidden;
  return {{"down", weights({inner, hidden})},  {"embedding", weights({words, hidden})},
          {"gate", weights({hidden, inner})},  {"k", weights({hidden, hidden / 4})},
          {"norm", weights({hidden})},         {"o", weights({hidden, hidden})},
          {"q", weights({hidden, hidden})},    {"up", weights({hidden, inner})},
          {"v", weights({hidden, hidden / 4})}};
}

cairn::Sharding sharding_of(const Layout& layout, const cairn::Shape& shape) {
  const auto mesh = must(cairn::Mesh::over_ranks(layout.axes, layout.ranks));
  return must(
      cairn::NamedSharding::make(mesh, shape.size() < 2 ? cairn::PartitionSpec() : layout.spec));
}

/// What a rank holds, as a view of the whole or in memory of its own.
cairn::Tree part_of(const std::vector<Leaf>& leaves, const Layout& layout, int rank, bool view) {
  std::vector<std::pair<cairn::Key, cairn::Tree>> children;
  for (const auto& [name, whole] : leaves) {
    const cairn::Sharding sharding = sharding_of(layout, whole.shape());
    std::vector<cairn::Shard> shards;
    for (const cairn::Holding& held : sharding.holdings(whole.shape(), rank)) {
      const cairn::Array slice = whole.slice(held.box);
      shards.push_back(
          {held.position, view ? slice : must(cairn::Array::zeros(whole.dtype(), slice.shape()))});
    }
    children.emplace_back(name, must(cairn::ShardedArray::make(whole.dtype(), whole.shape(),
                                                               sharding, std::move(shards))));
  }
  return cairn::Tree::dict(std::move(children));
}

bool holds(const cairn::Tree& tree, const std::vector<Leaf>& leaves) {
  const auto found = must(cairn::flatten(tree));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& array = std::get<cairn::ShardedArray>(found[i].leaf);
    for (const cairn::Shard& shard : array.shards()) {
      const auto expected = must(leaves[i].whole.slice(array.box_of(shard)).to_dense());
      if (!std::ranges::equal(shard.data.bytes(), expected.bytes())) return false;
    }
  }
  return true;
}

/// Counts the bytes that are read from it.
class CountingStore final : public cairn::storage::ForwardingStore {
 public:
  CountingStore(std::shared_ptr<Store> behind, std::atomic<std::uint64_t>& bytes)
      : ForwardingStore(std::move(behind)), bytes_(bytes) {}

  cairn::Result<std::unique_ptr<cairn::storage::ObjectReader>> open(std::string_view key) override {
    CAIRN_TRY_ASSIGN(auto reader, behind_->open(key));
    return std::unique_ptr<cairn::storage::ObjectReader>(
        std::make_unique<Reader>(std::move(reader), bytes_));
  }

 private:
  class Reader final : public cairn::storage::ObjectReader {
   public:
    Reader(std::unique_ptr<ObjectReader> behind, std::atomic<std::uint64_t>& bytes)
        : behind_(std::move(behind)), bytes_(bytes) {}
    std::uint64_t size() const override { return behind_->size(); }
    cairn::Result<void> read_at(std::uint64_t offset, cairn::MutableByteSpan out) override {
      bytes_ += out.size();
      return behind_->read_at(offset, out);
    }
    cairn::Result<std::string> generation() override { return behind_->generation(); }

   private:
    const std::unique_ptr<ObjectReader> behind_;
    std::atomic<std::uint64_t>& bytes_;
  };

  std::atomic<std::uint64_t>& bytes_;
};

class Loads {
 public:
  Loads(std::string path, const std::vector<Leaf>& leaves, Layout layout)
      : path_(std::move(path)), leaves_(leaves), layout_(std::move(layout)) {
    for (int rank = 0; rank < layout_.ranks; ++rank)
      memory_.push_back(part_of(leaves_, layout_, rank, false));
  }

  /// All ranks, each through a store that counts; also checks what came.
  void count() {
    std::atomic<bool> right = true;
    run([&](const cairn::LoadOptions& options, cairn::Runtime& runtime) {
      auto checkpoint = must(cairn::open_checkpoint(path_, runtime));
      auto& prefix = checkpoint.prefixes[0];
      prefix.store = std::make_shared<CountingStore>(prefix.store, read_);
      must(cairn::load(checkpoint, options, runtime));
      if (!holds(*options.like, leaves_)) right = false;
    });
    if (right) return;
    std::fprintf(stderr, "%s: the bytes are not what was saved\n", layout_.name);
    std::exit(1);
  }

  void time() {
    const auto start = std::chrono::steady_clock::now();
    run([&](const cairn::LoadOptions& options, cairn::Runtime& runtime) {
      must(cairn::load(path_, options, runtime));
    });
    seconds_.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }

  void print() {
    std::uint64_t needed = 0;
    for (const Leaf& leaf : leaves_) needed += leaf.whole.nbytes();
    std::ranges::sort(seconds_);
    std::printf(
        "{\"layout\": \"%s\", \"read\": %ju, \"needed\": %ju, \"best_s\": %.4f, "
        "\"median_s\": %.4f}\n",
        layout_.name, static_cast<std::uintmax_t>(read_), static_cast<std::uintmax_t>(needed),
        seconds_.front(), seconds_[seconds_.size() / 2]);
  }

 private:
  template <typename Body>
  void run(const Body& body) {
    cairn::testing::run_ranks(layout_.ranks, [&](cairn::coord::Coordinator& coordinator) {
      cairn::Runtime runtime({.threads = 1, .coordinator = &coordinator});
      cairn::LoadOptions options;
      options.like = &memory_[static_cast<std::size_t>(coordinator.rank())];
      options.fill = true;
      body(options, runtime);
    });
  }

  const std::string path_;
  const std::vector<Leaf>& leaves_;
  const Layout layout_;
  std::vector<cairn::Tree> memory_;  // of each rank
  std::atomic<std::uint64_t> read_ = 0;
  std::vector<double> seconds_;
};

int save(const std::string& path, const std::vector<Leaf>& leaves) {
  cairn::testing::run_ranks(kSavers, [&](cairn::coord::Coordinator& coordinator) {
    cairn::Runtime runtime({.threads = 1, .coordinator = &coordinator});
    const cairn::Tree tree = part_of(leaves, layouts()[0], coordinator.rank(), true);
    must(cairn::save_tree(tree, path, {}, runtime, "model"));
  });
  return 0;
}

int load(const std::string& path, const std::vector<Leaf>& leaves, int times) {
  std::vector<std::unique_ptr<Loads>> all;
  for (const Layout& layout : layouts())
    all.push_back(std::make_unique<Loads>(path, leaves, layout));
  for (const auto& loads : all) loads->count();
  for (int n = 0; n < times; ++n) {
    for (const auto& loads : all) loads->time();
  }
  for (const auto& loads : all) loads->print();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 3 ? argv[1] : "";
  if (verb == "save") return save(argv[2], model(argv[3]));
  if (verb == "load" && argc > 4) return load(argv[2], model(argv[3]), std::atoi(argv[4]));
  std::fputs("usage: reshard save DIR small|large | reshard load DIR small|large TIMES\n", stderr);
  return 2;
}
