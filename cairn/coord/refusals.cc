// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/refusals.h"

#include <fmt/format.h>

namespace cairn::coord {

Error rank_taken(int rank) {
  return {Code::kFailedPrecondition, "coord/rank-taken",
          fmt::format("rank {} has been here before: two processes have this rank, or one was "
                      "started anew; give each a rank of its own, and start all of them anew",
                      rank)};
}

Error wrong_mpi_thread() {
  return {Code::kFailedPrecondition, "coord/mpi-thread",
          "MPI was initialised for one thread, and this is another; save and load in that one, or "
          "initialise MPI for more: MPI_Init_thread() with MPI_THREAD_SERIALIZED, or "
          "mpi4py.rc.thread_level = 'serialized' before the import of mpi4py.MPI"};
}

}  // namespace cairn::coord
