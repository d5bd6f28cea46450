// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/open.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/coord/in_process.h"
#include "cairn/coord/meeting.h"
#include "cairn/coord/rendezvous.h"
#include "cairn/storage/open.h"

namespace cairn::coord {
namespace {

struct Row {
  const char* rank;
  const char* count;
};

// Slurm comes last: mpirun in a Slurm job leaves Slurm's variables of the batch script in place.
constexpr auto kRows = std::to_array<Row>({
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
});

constexpr const char* kHowToSay =
    "start the program with srun, mpirun or torchrun, or set RANK and WORLD_SIZE for each process";

std::string_view value_of(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value != nullptr ? value : std::string_view();
}

Result<int> read_number(const char* name, std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return Error(Code::kInvalidArgument, "coord/bad-rank",
               fmt::format("{}='{}' is not a number", name, text.substr(0, 64)));
}

Result<std::unique_ptr<Coordinator>> open_alone() {
  CAIRN_TRY_ASSIGN(auto coordinators, make_in_process_coordinators(1));
  return std::move(coordinators[0]);
}

}  // namespace

Result<std::optional<Place>> find_place(const Environment& environment) {
  for (const Row& row : kRows) {
    const std::string_view rank = value_of(environment, row.rank);
    const std::string_view count = value_of(environment, row.count);
    if (rank.empty() && count.empty()) continue;
    if (rank.empty() || count.empty()) {
      return Error(Code::kInvalidArgument, "coord/no-rank",
                   fmt::format("{} is set, {} is not; {}", rank.empty() ? row.count : row.rank,
                               rank.empty() ? row.rank : row.count, kHowToSay));
    }
    Place place;
    CAIRN_TRY_ASSIGN(place.rank, read_number(row.rank, rank));
    CAIRN_TRY_ASSIGN(place.count, read_number(row.count, count));
    CAIRN_TRY(check_place(place).in([&] { return fmt::format("{} and {}", row.rank, row.count); }));
    return std::optional(place);
  }
  return std::optional<Place>();
}

Result<std::unique_ptr<Coordinator>> open_coordinator(const OpenCoordinatorOptions& options) {
  std::optional<Place> place = options.place;
  if (!place) {
    CAIRN_TRY_ASSIGN(place, find_place([](const char* name) { return std::getenv(name); }));
  }
  if (!place && options.may_be_alone) return open_alone();
  if (options.rendezvous.empty()) {
    if (!place || place->count == 1) return open_alone();
    return Error(Code::kFailedPrecondition, "coord/no-rendezvous",
                 fmt::format("this is rank {} of {}, and there is no place to meet; give a "
                             "directory that all ranks see, or a coordinator on MPI",
                             place->rank, place->count));
  }
  if (!place) {
    return Error(Code::kFailedPrecondition, "coord/no-rank",
                 fmt::format("nothing says which rank this is; {}; for one process alone, RANK=0 "
                             "and WORLD_SIZE=1",
                             kHowToSay));
  }
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(options.rendezvous));
  CAIRN_TRY_ASSIGN(auto store, storage::open_store(uri, {.create = true}));
  Clock& clock = options.clock != nullptr ? *options.clock : system_clock();
  return open_rendezvous(std::move(store), *place, clock, options.interrupted);
}

}  // namespace cairn::coord
