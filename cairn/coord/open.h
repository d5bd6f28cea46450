// SPDX-License-Identifier: Apache-2.0
// A coordinator from what the launcher put into the environment: one row a launcher in open.cc.
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

/// The first of these pairs of which one is set and not empty: RANK and WORLD_SIZE;
/// OMPI_COMM_WORLD_RANK and _SIZE; PMI_RANK and PMI_SIZE; SLURM_PROCID and SLURM_NTASKS. Nothing:
/// no launcher has been here. `invalid_argument` (coord/no-rank) if the other half is missing,
/// (coord/bad-rank) if they are no numbers or do not fit.
Result<std::optional<Place>> find_place(const Environment& environment);

struct OpenCoordinatorOptions {
  /// Where the ranks meet: URI or path of a directory that all of them see, for nothing else. Made
  /// if it is not there. Empty: this process is alone.
  std::string rendezvous = {};
  std::optional<Place> place = std::nullopt;  ///< nothing: find_place() in the environment
  /// Where no launcher has been: this process is alone, whatever the rendezvous. Otherwise that is
  /// an error, because many that were started wrongly would each believe so.
  bool may_be_alone = false;
  Clock* clock = nullptr;        ///< null: the machine's
  Interrupted interrupted = {};  ///< of the calls
};

/// `failed_precondition` (coord/no-rank): there is a rendezvous, nothing says which rank this is,
/// and it may not be alone; (coord/no-rendezvous): there are several ranks, and no place to meet.
/// Otherwise as find_place(), open_store() and open_rendezvous().
Result<std::unique_ptr<Coordinator>> open_coordinator(const OpenCoordinatorOptions& options = {});

}  // namespace cairn::coord
