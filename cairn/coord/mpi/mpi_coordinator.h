// SPDX-License-Identifier: Apache-2.0
// Ranks that meet by MPI. In a library of its own, libcairn_mpi: `find_package(cairn COMPONENTS
// mpi)` and `cairn::mpi`, or `pkg-config cairn-mpi`.
#pragma once

#include <memory>
#include <optional>

#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"

namespace cairn::coord {

struct MpiOptions {
  /// Whose processes are the ranks: MPI_Comm_c2f() of a communicator; nothing: MPI_COMM_WORLD.
  std::optional<int> communicator = std::nullopt;
  /// By when all of them must have called open_mpi().
  Deadline deadline = Deadline::never();
  Clock* clock = nullptr;  ///< null: the machine's
};

/// All processes of the communicator call it, after MPI_Init() or MPI_Init_thread() at any level,
/// and destroy the coordinator before MPI_Finalize(). It uses a duplicate of the communicator, so
/// its messages never mix with others.
///
/// Threading: with MPI_THREAD_SINGLE or FUNNELED all calls come from the thread that initialised
/// MPI (otherwise coord/rank-failed, which says so); with SERIALIZED none while another thread is
/// in MPI. Nothing happens between calls.
///
/// `failed_precondition` (coord/mpi-not-ready: MPI is not initialised, or finalised already),
/// `invalid_argument` (coord/bad-communicator), `deadline_exceeded` (coord/late-ranks; MPI does not
/// tell which). A coordinator that is dead gives up its communicator, and memory for what was on
/// its way: MPI can take back neither.
Result<std::unique_ptr<Coordinator>> open_mpi(const MpiOptions& options = {});

}  // namespace cairn::coord
