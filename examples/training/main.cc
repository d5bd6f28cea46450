// SPDX-License-Identifier: Apache-2.0
// cairn_training: a small language model is trained on any number of ranks, saves as it goes, and
// goes on from its latest checkpoint when it is started again, on any other number of ranks.
//
//   cairn_training --run DIR                                  one process
//   RANK=0 WORLD_SIZE=2 cairn_training --run DIR &            two that meet in the run directory
//   RANK=1 WORLD_SIZE=2 cairn_training --run DIR
//   mpirun -n 2 cairn_training --run DIR                      the same by their launcher
//   mpirun -n 2 cairn_training --run DIR --mpi                two that meet by MPI
//
//   --steps N        train to this step (100)
//   --save-every N   steps between checkpoints (10)
//   --hidden N       units of the hidden layer (64), for a run that begins
//   --mesh MESH      how state lies on the ranks (fsdp=RANKS,tp=1), such as fsdp=2,tp=2
//   --metrics FILE   what saves do, in Prometheus' text format
//   --stall-at N     for the demonstration: stand still in the middle of the save of this step
//
// Rank 0 writes DIR/loss.csv: step and loss.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>

#include <unistd.h>

#include "cairn/coord/open.h"
#include "cairn/manager/checkpointer.h"
#include "examples/training/state.h"
#ifdef CAIRN_WITH_MPI
#include <mpi.h>

#include "cairn/coord/mpi/mpi_coordinator.h"
#endif

namespace {

using namespace training;
using cairn::Result;

struct Options {
  std::string run;
  std::string mesh;
  std::string metrics;
  std::int64_t steps = 100;
  std::int64_t save_every = 10;
  std::int64_t hidden = 64;
  std::int64_t stall_at = 0;
  bool mpi = false;
};

std::optional<Options> parse_options(int argc, char** argv) {
  const std::map<std::string_view, std::string Options::*> texts = {
      {"--run", &Options::run}, {"--mesh", &Options::mesh}, {"--metrics", &Options::metrics}};
  const std::map<std::string_view, std::int64_t Options::*> numbers = {
      {"--steps", &Options::steps},
      {"--save-every", &Options::save_every},
      {"--hidden", &Options::hidden},
      {"--stall-at", &Options::stall_at}};
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--mpi") {
      options.mpi = true;
    } else if (texts.contains(name) && i + 1 < argc) {
      options.*texts.at(name) = argv[++i];
    } else if (numbers.contains(name) && i + 1 < argc && std::atoll(argv[i + 1]) > 0) {
      options.*numbers.at(name) = std::atoll(argv[++i]);
    } else {
      return std::nullopt;
    }
  }
  return options.run.empty() ? std::nullopt : std::optional(options);
}

Result<std::unique_ptr<cairn::coord::Coordinator>> meet(const Options& options) {
#ifdef CAIRN_WITH_MPI
  if (options.mpi) return cairn::coord::open_mpi();
#else
  if (options.mpi) {
    return cairn::Error(cairn::Code::kUnimplemented, "training/no-mpi",
                        "this program was built without MPI; without --mpi ranks meet in files");
  }
#endif
  return cairn::coord::open_coordinator(
      {.rendezvous = options.run + "/meet", .may_be_alone = true});
}

/// Each device of the mesh is one rank.
Result<Job> make_job(const Options& options, cairn::coord::Coordinator& ranks) {
  const std::string count = std::to_string(ranks.count());
  CAIRN_TRY_ASSIGN(auto axes, cairn::parse_mesh_axes(
                                  options.mesh.empty() ? "fsdp=" + count + ",tp=1" : options.mesh));
  CAIRN_TRY_ASSIGN(auto mesh, cairn::Mesh::over_ranks(std::move(axes), ranks.count()));
  CAIRN_TRY_ASSIGN(auto rules, partition_rules());
  if (mesh.size() == static_cast<std::size_t>(ranks.count()))
    return Job{ranks, std::move(mesh), std::move(rules)};
  return cairn::Error(cairn::Code::kInvalidArgument, "training/mesh",
                      options.mesh + " does not have one device for each of " + count + " ranks");
}

/// The latest checkpoint onto the mesh of today, whatever mesh it was saved from; or a fresh start.
Result<State> take_up(cairn::Checkpointer& run, const Options& options, const Job& job) {
  CAIRN_TRY_ASSIGN(
      const auto loaded,
      run.load_checkpoint_if_any({.load = {.mesh = job.mesh, .partition_rules = &job.rules}}));
  if (!loaded) return initial_state(options.hidden, job);
  State state;
  CAIRN_TRY(cairn::from_tree(loaded->tree, state));
  return state;
}

/// Lines of loss.csv up to the step of the checkpoint; what came later will come again.
std::ofstream take_up_losses(const std::string& path, std::int64_t step) {
  std::ifstream old(path);
  std::ostringstream kept;
  for (std::string line; std::getline(old, line) && std::atoll(line.c_str()) <= step;)
    kept << line << "\n";
  if (kept.str().empty()) kept << "step,loss\n";
  std::ofstream losses(path, std::ios::trunc);
  losses << kept.str() << std::flush;
  return losses;
}

std::atomic<bool> stall_in_save = false;

/// What the library has to say goes to standard error. It also tells what a save is doing, in the
/// save's own thread: a place to stand still until somebody kills the job.
void log(const cairn::LogEntry& entry) {
  if (entry.level != cairn::LogLevel::kInfo)
    std::fprintf(stderr, "%s: %s\n", entry.event, entry.message.c_str());
  const bool written = std::string_view(entry.event) == "save/phase" && entry.message == "syncing";
  if (!stall_in_save || !written) return;
  std::printf("stalled\n");
  for (;;) ::pause();
}

Result<void> train(const Options& options, const Job& job) {
  auto runtime = std::make_shared<cairn::Runtime>(
      cairn::RuntimeOptions{.coordinator = &job.ranks, .log = log});
  CAIRN_TRY_ASSIGN(auto signals, cairn::SignalWatch::make({.save_and_stop = {SIGTERM}}));
  CAIRN_TRY_ASSIGN(const auto run,
                   cairn::Checkpointer::make(
                       {.base_path = options.run,
                        .step_policies = {{.every = options.save_every}},
                        .manager = std::make_shared<cairn::AsyncCheckpointManager>(
                            cairn::AsyncManagerOptions{.verbose = options.stall_at > 0}, runtime),
                        .signals = std::move(signals),
                        .metrics_path = options.metrics},
                       runtime));

  CAIRN_TRY_ASSIGN(State state, take_up(*run, options, job));
  const bool leads = job.ranks.rank() == 0;
  std::ofstream losses;
  if (leads) {
    losses = take_up_losses(options.run + "/loss.csv", state.step);
    losses.precision(9);  // enough to tell any two floats apart
    std::printf("%s step %jd, on %d %s\n", state.step == 0 ? "starting at" : "resuming from",
                std::intmax_t{state.step}, job.ranks.count(),
                job.ranks.count() == 1 ? "rank" : "ranks");
  }
  while (state.step < options.steps && !run->should_stop()) {
    CAIRN_TRY_ASSIGN(const float loss, train_step(state, job));
    if (leads) losses << state.step << "," << loss << std::endl;
    const bool stalls = state.step == options.stall_at;
    if (stalls) CAIRN_TRY(run->wait_until_finished());
    stall_in_save = stalls;
    // Saves if it is time, and only then makes a tree. It returns when the state has been copied;
    // writing goes on beside the next steps. The error of a save that failed meanwhile comes out of
    // a later call.
    CAIRN_TRY(
        run->on_step(state.step, [&] { return cairn::to_tree(state); },
                     {.mesh = &job.mesh, .metrics = cairn::Json::Object{{"loss", double{loss}}}}));
    if (stalls) CAIRN_TRY(run->wait_until_finished());
  }
  CAIRN_TRY(run->wait_until_finished());
  if (leads) std::printf("trained to step %jd\n", std::intmax_t{state.step});
  return {};
}

Result<void> run_job(const Options& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.run, failed);
  if (failed) {
    return cairn::Error(cairn::Code::kInvalidArgument, "training/run",
                        options.run + ": " + failed.message());
  }
  CAIRN_TRY_ASSIGN(const auto ranks, meet(options));
  CAIRN_TRY_ASSIGN(const Job job, make_job(options, *ranks));
  return train(options, job);
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: cairn_training --run DIR [--steps N] [--save-every N] "
                 "[--hidden N] [--mesh MESH] [--metrics FILE] [--stall-at N] [--mpi]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // somebody may read along, through a pipe
#ifdef CAIRN_WITH_MPI
  if (options->mpi) MPI_Init(&argc, &argv);
#endif
  const auto done = run_job(*options);
  if (!done) std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
#ifdef CAIRN_WITH_MPI
  if (options->mpi) MPI_Finalize();
#endif
  return done ? 0 : 1;
}
