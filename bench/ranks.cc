// SPDX-License-Identifier: Apache-2.0
// What a job of many ranks costs each of them, without the ranks: `ranks plan LEAVES RANKS TIMES`
// plans what one of them saves and loads, `ranks join LEAVES RANKS` is rank 0 with the reports of
// all, `ranks meet RANKS` counts the file operations of a save. bench/ranks.py prints the tables.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <malloc.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/posix/file_rank_board.h"
#include "cairn/load/load_plan.h"
#include "cairn/load/load_target.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/save/divide_work.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"
#include "cairn/tree/structure.h"

namespace {

using cairn::testing::must;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What the program has allocated and not freed.
std::size_t memory_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Half of the axes' sizes are moved from one to the other for a mesh to load onto.
cairn::Mesh make_mesh(int ranks, bool other) {
  const cairn::Index tp = ranks >= 1024 ? 8 : 2;
  const cairn::Index dp = ranks >= 16384 ? 16 : ranks >= 1024 ? 4 : 2;
  const cairn::Index fsdp = ranks / tp / dp;
  return must(cairn::Mesh::over_ranks(
      {{"dp", dp}, {"fsdp", other ? fsdp / 2 : fsdp}, {"tp", other ? tp * 2 : tp}}, ranks));
}

struct Kind {
  cairn::PartitionSpec spec;
  cairn::DType dtype;
  cairn::Shape shape;
};

/// Of ten leaves of a layer: kernels split both ways, an embedding, norms and a scalar.
const std::vector<Kind>& kinds() {
  using cairn::DType;
  static const std::vector<Kind> all = [] {
    const Kind up{{{"fsdp"}, {"tp"}}, DType::kBfloat16, {1024, 2048}};
    const Kind down{{{"tp"}, {"fsdp"}}, DType::kBfloat16, {2048, 1024}};
    const Kind embedding{{{"tp"}, {}}, DType::kBfloat16, {1024, 1024}};
    const Kind norm{{}, DType::kFloat32, {1024}};
    const Kind count{{}, DType::kInt32, {}};
    return std::vector<Kind>{up, down, up, down, up, down, embedding, norm, norm, count};
  }();
  return all;
}

std::vector<cairn::PlannedArray> plan_save(int leaves, const cairn::Mesh& mesh) {
  std::vector<cairn::Sharding> shardings;
  for (const Kind& kind : kinds())
    shardings.emplace_back(must(cairn::NamedSharding::make(mesh, kind.spec)));
  cairn::PlanOptions options;
  options.layout = cairn::kZarr2Layout;
  std::vector<cairn::PlannedArray> arrays;
  for (int i = 0; i < leaves; ++i) {
    const auto k = static_cast<std::size_t>(i) % kinds().size();
    const cairn::KeyPath path(
        {"layers", std::to_string(i / 10), "leaf" + std::to_string(i % 10), "kernel"});
    arrays.push_back(
        must(cairn::plan_array(path, kinds()[k].dtype, kinds()[k].shape, shardings[k], options)));
  }
  return arrays;
}

std::vector<cairn::ManifestArray> stored_of(const std::vector<cairn::PlannedArray>& arrays) {
  std::vector<cairn::ManifestArray> stored;
  for (const cairn::PlannedArray& array : arrays)
    stored.push_back({array.path, array.stored, {}, {}, {}, cairn::spec_of(array.sharding)});
  return stored;
}

cairn::LoadPlan plan_load(const cairn::OpenedPrefix& prefix, const cairn::Mesh& mesh, int rank) {
  cairn::LoadOptions options;
  options.mesh = mesh;
  const auto target = must(cairn::LoadTarget::make(prefix, options));
  std::vector<cairn::WantedBox> wanted;
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    const cairn::ManifestArray& array = prefix.manifest.arrays[i];
    const cairn::Sharding sharding = must(target.sharding_of(i, nullptr));
    for (cairn::Holding& held : sharding.holdings(array.stored.shape, rank))
      wanted.push_back({&array, std::move(held.box)});
  }
  return cairn::plan_load(wanted, true);
}

/// The best of some times, everything found anew in each.
struct Cost {
  double seconds = 1e9;
  std::size_t bytes = 0;
};

int plan(int leaves, int ranks, int times) {
  const int rank = ranks / 3;
  Cost save;
  Cost load;
  std::size_t written = 0;
  std::size_t read = 0;
  for (int n = 0; n < times; ++n) {
    const std::size_t before = memory_in_use();
    const Stopwatch saving;
    auto arrays = plan_save(leaves, make_mesh(ranks, false));
    must(cairn::divide_work({&arrays}, rank, ranks));
    save = {std::min(save.seconds, saving.seconds()), memory_in_use() - before};
    for (const cairn::PlannedArray& array : arrays) written += array.work.chunks.size();
    cairn::OpenedPrefix prefix;
    prefix.manifest.arrays = stored_of(arrays);
    const std::size_t opened = memory_in_use();
    const Stopwatch loading;
    const cairn::LoadPlan plan = plan_load(prefix, make_mesh(ranks, true), rank);
    load = {std::min(load.seconds, loading.seconds()), memory_in_use() - opened};
    read += plan.jobs.size();
  }
  std::printf(
      "{\"save_s\": %.6f, \"save_bytes\": %zu, \"load_s\": %.6f, \"load_bytes\": %zu, "
      "\"written_chunks\": %zu, \"reads\": %zu}\n",
      save.seconds, save.bytes, load.seconds, load.bytes, written, read);
  return 0;
}

/// Report of one of `ranks` that have every chunk in turn.
cairn::RankReport report_of(const std::vector<cairn::ManifestArray>& arrays, int rank, int ranks) {
  cairn::RankReport report;
  report.rank = rank;
  report.sums.emplace_back();
  std::uint64_t passed = 0;
  auto next = static_cast<std::uint64_t>(rank);
  for (std::uint32_t i = 0; i < arrays.size(); ++i) {
    const std::uint64_t chunks = arrays[i].stored.chunk_count();
    for (; next < passed + chunks; next += static_cast<std::uint64_t>(ranks))
      report.sums[0].ranges.push_back({i, 7 * i, next - passed, 0, arrays[i].stored.chunk_bytes()});
    passed += chunks;
  }
  return report;
}

/// The tree of the arrays, without their memory.
cairn::Json structure_of(const std::vector<cairn::ManifestArray>& arrays) {
  std::vector<cairn::NamedLeaf> leaves;
  for (const cairn::ManifestArray& array : arrays) {
    leaves.push_back({array.path, must(cairn::ShardedArray::make(array.stored.dtype,
                                                                 array.stored.shape, {}, {}))});
  }
  return must(cairn::structure_to_json(must(cairn::nest(std::move(leaves)))));
}

/// How long a rank that loads takes to read the manifest, and what it then holds.
Cost open_manifest(const std::string& text) {
  const std::size_t before = memory_in_use();
  const Stopwatch watch;
  const auto manifest = must(cairn::parse_manifest(text));
  return {watch.seconds(), memory_in_use() - before};
}

int join(int leaves, int ranks) {
  cairn::Manifest manifest;
  manifest.layout = cairn::kZarr2Layout;
  manifest.arrays = stored_of(plan_save(leaves, make_mesh(ranks, false)));
  manifest.structure = structure_of(manifest.arrays);
  cairn::WrittenSums sums;
  std::size_t report_bytes = 0;
  double reading = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string text = must(cairn::dump_rank_report(report_of(manifest.arrays, rank, ranks)));
    report_bytes += text.size();
    const Stopwatch watch;
    const auto report = must(cairn::parse_rank_report(text));
    sums.add(report.sums[0]);
    reading += watch.seconds();
  }
  const std::size_t ranges = sums.ranges.size();
  const std::size_t held = sums.ranges.capacity() * sizeof(cairn::SummedRange);
  const Stopwatch joining;
  must(cairn::join_sums(std::move(sums), manifest.arrays));
  const double joined = joining.seconds();
  const std::string text = must(cairn::dump_manifest(manifest));
  const Cost opened = open_manifest(text);
  std::printf(
      "{\"ranges\": %zu, \"report_bytes\": %zu, \"read_s\": %.4f, \"join_s\": %.4f, "
      "\"held_bytes\": %zu, \"manifest_bytes\": %zu, \"open_s\": %.4f, \"open_bytes\": %zu}\n",
      ranges, report_bytes, reading, joined, held, text.size(), opened.seconds, opened.bytes);
  return 0;
}

/// All ranks of a save one after the other, so that nobody waits: what is counted is the same every
/// time. Operations of rank 0, and of the last.
int meet(int ranks) {
  const cairn::testing::TempDir dir;
  const std::string dest = dir / "c";
  std::vector<std::size_t> counts(static_cast<std::size_t>(ranks));
  std::vector<std::unique_ptr<cairn::storage::FileSystem>> file_systems;
  for (std::size_t& count : counts) {
    file_systems.push_back(cairn::testing::interpose(cairn::storage::posix_file_system(),
                                                     [&count](std::size_t) { ++count; }));
  }
  cairn::Clock& clock = cairn::system_clock();
  const auto never = cairn::Deadline::never();
  auto attempt =
      must(cairn::begin_attempt(*file_systems[0], clock, must(cairn::LocalPath::parse(dest)),
                                {.prefixes = {}, .ranks = ranks}));
  std::vector<std::unique_ptr<cairn::AttemptRank>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(must(cairn::join_attempt(
        *file_systems[static_cast<std::size_t>(rank)], clock, must(cairn::LocalPath::parse(dest)),
        {.attempt = attempt->id(), .rank = rank, .ranks = ranks})));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    auto& me = *all[static_cast<std::size_t>(rank)];
    me.enter("writing");
    cairn::RankReport report;
    report.rank = rank;
    must(me.report("written", report));
    me.enter("waiting for the others");
  }
  std::vector<int> from(static_cast<std::size_t>(ranks));
  std::iota(from.begin(), from.end(), 0);
  must(all[0]->wait_reports("written", from, never,
                            [](cairn::RankReport) { return cairn::Result<void>(); }));
  must(attempt->commit({}));
  for (int rank = 1; rank < ranks; ++rank)
    must(all[static_cast<std::size_t>(rank)]->wait_outcome(never));
  std::printf("{\"first\": %zu, \"last\": %zu}\n", counts.front(), counts.back());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return std::atoi(argv[i]); };
  if (verb == "plan" && argc == 5) return plan(number(2), number(3), number(4));
  if (verb == "join" && argc == 4) return join(number(2), number(3));
  if (verb == "meet" && argc == 3) return meet(number(2));
  std::fputs("usage: ranks plan LEAVES RANKS TIMES | ranks join LEAVES RANKS | ranks meet RANKS\n",
             stderr);
  return 2;
}
