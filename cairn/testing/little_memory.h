// SPDX-License-Identifier: Apache-2.0
// A process that can take only little more memory than it has.
#pragma once

#include <cstdint>
#include <string>

#include <sys/resource.h>

#include "cairn/testing/temp_dir.h"

namespace cairn::testing {

/// Until it is destroyed the process gets at most `more` bytes of address space, so that a size
/// that a file merely claims cannot be allocated. Threads that begin meanwhile need some of it.
class LittleMemory {
 public:
  explicit LittleMemory(std::uint64_t more) {
    ::getrlimit(RLIMIT_AS, &before_);
    rlimit now = before_;
    now.rlim_cur = std::stoull(read_file("/proc/self/statm")) * 4096 + more;
    ::setrlimit(RLIMIT_AS, &now);
  }
  ~LittleMemory() { ::setrlimit(RLIMIT_AS, &before_); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  rlimit before_{};
};

}  // namespace cairn::testing
