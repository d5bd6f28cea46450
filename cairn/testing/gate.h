// SPDX-License-Identifier: Apache-2.0
// Blocks disk operations in the background, so that a test knows what is still in flight.
#pragma once

#include <latch>
#include <memory>

#include "cairn/storage/local/file_system.h"

namespace cairn::testing {

/// A file system whose operations on background threads block until open() is called; others pass.
/// Must outlive its users.
class Gate {
 public:
  Gate();
  ~Gate();
  void open();
  storage::FileSystem* file_system() { return file_system_.get(); }

 private:
  bool is_open_ = false;
  std::latch opened_{1};
  std::unique_ptr<storage::FileSystem> file_system_;
};

}  // namespace cairn::testing
