// SPDX-License-Identifier: Apache-2.0
// A coordinator from the environment that the launcher set: one row for each launcher in open.cc.
// Programs that use MPI call open_mpi() of `mpi/mpi_coordinator.h` instead.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// The value of a variable, or null, as getenv().
using Environment = std::function<const char*(const char* name)>;

/// Takes the first of these pairs in which a variable is set and not empty: RANK and WORLD_SIZE;
/// OMPI_COMM_WORLD_RANK and _SIZE; PMI_RANK and PMI_SIZE; SLURM_PROCID and SLURM_NTASKS. nullopt:
/// no launcher set any. `invalid_argument`: coord/no-rank (the other half is missing),
/// coord/bad-rank (not numbers, or a rank outside the count).
Result<std::optional<Place>> find_place(const Environment& environment);

struct OpenCoordinatorOptions {
  /// Where the ranks meet: URI or path of a directory that all of them see and that serves nothing
  /// else; created if it does not exist. Empty: this process is alone.
  std::string rendezvous = {};
  std::optional<Place> place = std::nullopt;  ///< nullopt: find_place() in the environment
  /// Without a launcher this process is alone, whatever the rendezvous. If false, that is an error,
  /// because several processes that were started wrongly would each believe to be alone.
  bool may_be_alone = false;
  Clock* clock = nullptr;        ///< null: the machine's
  Interrupted interrupted = {};  ///< of the calls
};

/// `failed_precondition`: coord/no-rank (there is a rendezvous, nothing says which rank this is,
/// and it may not be alone), coord/no-rendezvous (several ranks, and no place to meet). Otherwise
/// errors of find_place(), open_store() and open_rendezvous().
Result<std::unique_ptr<Coordinator>> open_coordinator(const OpenCoordinatorOptions& options = {});

}  // namespace cairn::coord
