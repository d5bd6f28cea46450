// SPDX-License-Identifier: Apache-2.0
// The tests that every coordinator passes, each rank a process under mpirun.
//
//   cairn_mpi_suite LEVEL [gtest options]    LEVEL is 0 (MPI_THREAD_SINGLE) to 3 (MULTIPLE)
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>
#include <mpi.h>

#include "cairn/coord/mpi/mpi_coordinator.h"
#include "cairn/testing/coordinator_suite.h"
#include "cairn/testing/must.h"

namespace cairn::coord {
namespace {

using cairn::testing::Coordinators;
using cairn::testing::must;
using cairn::testing::reason;

Deadline soon_enough() { return Deadline::in(std::chrono::minutes(2)); }

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

Coordinators open_one(int) {
  Coordinators coordinators;
  coordinators.push_back(must(open_mpi({.deadline = soon_enough()})));
  return coordinators;
}

TEST(Mpi, WorksOnTheCommunicatorItIsGiven) {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, -world_rank(), &half);
  int rank = 0;
  int count = 0;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &count);
  {
    const auto me = must(open_mpi({.communicator = MPI_Comm_c2f(half)}));
    EXPECT_EQ(me->rank(), rank);
    EXPECT_EQ(me->count(), count);
    const std::string mine(1, static_cast<char>('a' + world_rank() % 2));
    EXPECT_EQ(as_text(must(me->broadcast(as_bytes(mine), "half", soon_enough())).bytes()), mine);
  }
  MPI_Comm_free(&half);
}

TEST(Mpi, RefusesACommunicatorThatIsNone) {
  EXPECT_EQ(reason(open_mpi({.communicator = MPI_Comm_c2f(MPI_COMM_NULL)})),
            "coord/bad-communicator");
}

TEST(Mpi, DoesNotMeetTheMessagesOfTheProgram) {
  const auto me = must(open_mpi());
  const int next = (me->rank() + 1) % me->count();
  int sent = me->rank();
  int got = -1;
  MPI_Request requests[2];
  MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
  must(me->barrier("between", soon_enough()));
  MPI_Isend(&sent, 1, MPI_INT, next, 1, MPI_COMM_WORLD, &requests[1]);
  must(me->barrier("after", soon_enough()));
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(got, (me->rank() + me->count() - 1) % me->count());
}

TEST(Mpi, AnotherThreadMayCallItIfMpiAllows) {
  const auto me = must(open_mpi());
  int level = 0;
  MPI_Query_thread(&level);
  Result<void> result;
  std::thread([&] { result = me->barrier("elsewhere", soon_enough()); }).join();
  EXPECT_EQ(reason(result), level >= MPI_THREAD_SERIALIZED ? "none" : "coord/rank-failed");
}

// Run alone: afterwards the processes no longer agree about what they have opened.
TEST(MpiAlone, OpeningHasADeadline) {
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  if (count == 1 || world_rank() == count - 1) return;
  EXPECT_EQ(reason(open_mpi({.deadline = Deadline::in(std::chrono::milliseconds(300))})),
            "coord/late-ranks");
}

}  // namespace
}  // namespace cairn::coord

int main(int argc, char** argv) {
  using cairn::coord::open_mpi;
  ::testing::InitGoogleTest(&argc, argv);
  if (argc < 2 || cairn::testing::reason(open_mpi()) != "coord/mpi-not-ready") return 2;
  int level = std::atoi(argv[1]);
  MPI_Init_thread(&argc, &argv, level, &level);
  int count = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  cairn::testing::register_coordinator_suite("Mpi", count, &cairn::coord::open_one);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed != 0 || cairn::testing::reason(open_mpi()) != "coord/mpi-not-ready" ? 1 : 0;
}
