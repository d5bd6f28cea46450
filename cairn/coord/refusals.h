// SPDX-License-Identifier: Apache-2.0
// Errors that several ways to meet share, including those in other libraries.
#pragma once

#include "cairn/base/error.h"

namespace cairn::coord {

/// `failed_precondition` (coord/rank-taken).
Error rank_taken(int rank);
/// `failed_precondition` (coord/mpi-thread).
Error wrong_mpi_thread();

}  // namespace cairn::coord
