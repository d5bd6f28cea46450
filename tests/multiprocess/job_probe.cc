// SPDX-License-Identifier: Apache-2.0
// One rank of a job that saves and loads. What to do comes line by line on standard input (plain
// processes that meet in a directory), or as arguments (under mpirun):
//
//   RANK=0 WORLD_SIZE=2 cairn_job_probe DIRECTORY
//   cairn_job_probe --mpi DIRECTORY '{"do": ...}' '{"do": ...}'
//
//   {"do":"save","path":...,"step":7,"mesh":[["x",2]],"layout":"zarr2","seconds":60}
//       and for trouble: "extra":true (one leaf more; a number: on that rank alone), or
//       "trouble":"kill"|"stop"|"fail" (itself; every write from then on) at "operation":100 (of
//       the file system, in this save) or at "phase":"syncing"
//   {"do":"load","path":...,"mesh":[["x",2]],"rules":[[".*",["x"]]],"out":DIRECTORY}
//       leaves each box as raw bytes in a file, and says which
//
// Each answer is a line: {"boxes":[...]}, {"bytes":...,"operations":...}, or
// {"reason":...,"message":...}. It goes to standard output; under mpirun, which mixes the outputs
// of all ranks, to the file DIRECTORY/<rank>.
#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cairn/array/array.h"
#include "cairn/coord/open.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/tree/flatten.h"
#include "tests/orders.h"
#ifdef CAIRN_WITH_MPI
#include <mpi.h>

#include "cairn/coord/mpi/mpi_coordinator.h"
#include "cairn/sharding/make_sharded.h"
#endif

namespace {

using namespace cairn;
using testing::describe;
using testing::number_of;
using testing::say;
using testing::text_of;

Result<Mesh> mesh_of(const Json& order, int ranks) {
  std::vector<MeshAxis> axes;
  for (const Json& axis : *order.find("mesh")->array())
    axes.push_back({*(*axis.array())[0].text(), *(*axis.array())[1].integer()});
  return Mesh::over_ranks(std::move(axes), ranks);
}

/// Element n of the whole array is n + step, as a 32-bit integer.
Result<Tree> numbered(const Shape& shape, const PartitionSpec& spec, const Mesh& mesh, int rank,
                      std::int64_t step) {
  CAIRN_TRY_ASSIGN(auto named, NamedSharding::make(mesh, spec));
  CAIRN_TRY_ASSIGN(auto array,
                   allocate_sharded(DType::kInt32, shape, Sharding(std::move(named)), rank));
  CAIRN_TRY_ASSIGN(Array whole, Array::allocate(DType::kInt32, shape));
  auto* numbers = reinterpret_cast<std::int32_t*>(whole.mutable_data());
  std::iota(numbers, numbers + Box::whole(shape).elements(), static_cast<std::int32_t>(step));
  for (const Shard& shard : array.shards()) {
    Array to = shard.data;
    CAIRN_TRY(copy_array(whole.slice(array.box_of(shard)), to));
  }
  return Tree(std::move(array));
}

/// Rows and columns over the first axis, both over two if there are two, and one on every device.
Result<Tree> state_of(const Json& order, const Mesh& mesh, int rank) {
  const std::int64_t step = number_of(order, "step", 0);
  const std::string x = mesh.axes().front().name;
  const PartitionSpec::Entry y{mesh.axes().back().name};
  CAIRN_TRY_ASSIGN(auto rows, numbered({48, 40}, {{x}}, mesh, rank, step));
  CAIRN_TRY_ASSIGN(auto columns, numbered({40, 48}, {{}, {x}}, mesh, rank, step));
  CAIRN_TRY_ASSIGN(
      auto both,
      numbered({48, 96}, mesh.axes().size() > 1 ? PartitionSpec({{x}, y}) : PartitionSpec({{x}}),
               mesh, rank, step));
  CAIRN_TRY_ASSIGN(auto large, numbered({24, 100'000}, {{x}}, mesh, rank, step));
  CAIRN_TRY_ASSIGN(auto all, numbered({7}, {}, mesh, rank, step));
  std::vector<std::pair<Key, Tree>> children{
      {"rows", std::move(rows)},   {"columns", std::move(columns)}, {"both", std::move(both)},
      {"large", std::move(large)}, {"all", std::move(all)},         {"step", Value(Integer(step))}};
  const Json* extra = order.find("extra");
  if (extra != nullptr && (extra->boolean() || extra->integral() == rank))
    children.emplace_back("extra", Value(Integer(1)));
  return Tree::dict(std::move(children));
}

void limit_files(rlim_t bytes) {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = std::min(bytes, limit.rlim_max);
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void strike(std::string_view trouble) {
  if (trouble == "fail") {
    limit_files(0);
  } else {
    ::kill(::getpid(), trouble == "stop" ? SIGSTOP : SIGKILL);
  }
}

Result<Json> save(const Json& order, coord::Coordinator* job) {
  const int rank = job != nullptr ? job->rank() : 0;
  CAIRN_TRY_ASSIGN(const Mesh mesh, mesh_of(order, job != nullptr ? job->count() : 1));
  CAIRN_TRY_ASSIGN(const Tree tree, state_of(order, mesh, rank));
  const std::int64_t when = number_of(order, "operation", -1);
  std::atomic<std::size_t> operations = 0;
  const auto files = testing::interpose(storage::posix_file_system(), [&](std::size_t operation) {
    operations = operation + 1;
    if (static_cast<std::int64_t>(operation) == when) strike(text_of(order, "trouble"));
  });
  Runtime runtime({.threads = 1, .file_system = files.get(), .coordinator = job});
  SaveOptions options{.layout = text_of(order, "layout")};
  options.step = number_of(order, "step", 0);
  options.timeout = std::chrono::seconds(number_of(order, "seconds", 60));
  SaveInternals internals;
  internals.phase = [&order](std::string_view phase) {
    if (phase == text_of(order, "phase")) strike(text_of(order, "trouble"));
  };
  const auto report =
      save_checkpoint({{"m", tree}}, text_of(order, "path"), options, runtime, &internals);
  limit_files(RLIM_INFINITY);
  if (!report) return report.error();
  return Json(Json::Object{{"bytes", report->written_bytes},
                           {"operations", static_cast<std::uint64_t>(operations)}});
}

Result<Json> load(const Json& order, coord::Coordinator* job) {
  Runtime runtime({.threads = 1, .coordinator = job});
  LoadOptions options;
  CAIRN_TRY_ASSIGN(options.mesh, mesh_of(order, runtime.ranks()));
  CAIRN_TRY_ASSIGN(const auto rules, PartitionRules::parse(dump_json(*order.find("rules"))));
  options.partition_rules = &rules;
  if (order.find("prefix") != nullptr) options.prefix = text_of(order, "prefix");
  CAIRN_TRY_ASSIGN(const auto loaded, cairn::load(text_of(order, "path"), options, runtime));
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(loaded.tree));
  Json::Array boxes;
  for (const NamedLeaf& leaf : leaves) {
    const auto* array = std::get_if<ShardedArray>(&leaf.leaf);
    if (array == nullptr) continue;
    for (const Shard& shard : array->shards()) {
      const Box box = array->box_of(shard);
      const std::string file = text_of(order, "out") + "/" + std::to_string(runtime.rank()) + "-" +
                               std::to_string(boxes.size());
      std::ofstream(file, std::ios::binary) << as_text(shard.data.bytes());
      boxes.emplace_back(Json::Object{{"key", leaf.path.text()},
                                      {"dtype", dtype_name(array->dtype())},
                                      {"begin", Json::Array(box.begin.begin(), box.begin.end())},
                                      {"end", Json::Array(box.end.begin(), box.end.end())},
                                      {"file", file}});
    }
  }
  return Json(Json::Object{{"boxes", std::move(boxes)}});
}

Json obey(const std::string& line, coord::Coordinator* job) {
  return testing::obey(line, [job](const Json& order) {
    return text_of(order, "do") == "save" ? save(order, job) : load(order, job);
  });
}

int by_rendezvous(const std::string& directory) {
  std::unique_ptr<coord::Coordinator> job;
  if (directory != "alone") {
    auto opened = coord::open_coordinator({.rendezvous = directory});
    if (!opened) {
      say(describe(opened.error()));
      return 1;
    }
    job = *std::move(opened);
  }
  for (std::string line; std::getline(std::cin, line);) say(obey(line, job.get()));
  return 0;
}

#ifdef CAIRN_WITH_MPI
int by_mpi(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int status = 0;
  {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::ofstream answers(std::string(argc > 2 ? argv[2] : ".") + "/" + std::to_string(rank));
    auto job = coord::open_mpi();
    for (int i = 3; job && i < argc; ++i) {
      const Json answer = obey(argv[i], job->get());
      if (answer.find("reason") != nullptr) status = 1;
      answers << dump_json(answer) << "\n";
    }
    if (!job) answers << dump_json(describe(job.error())) << "\n";
  }
  MPI_Finalize();
  return status;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left of a test that was killed, even stopped
  ::signal(SIGXFSZ, SIG_IGN);
  const std::string where = argc > 1 ? argv[1] : "alone";
#ifdef CAIRN_WITH_MPI
  if (where == "--mpi") return by_mpi(argc, argv);
#endif
  return by_rendezvous(where);
}
