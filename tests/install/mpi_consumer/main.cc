// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cairn/coord/mpi/mpi_coordinator.h"

int main() {
  const auto opened = cairn::coord::open_mpi();
  std::printf("%s\n", opened ? "it opened" : opened.error().message().c_str());
}
