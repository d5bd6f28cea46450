// SPDX-License-Identifier: Apache-2.0
// A file system on top of another that announces every operation before it happens: to kill the
// process there, to run something else in between, to count.
#pragma once

#include <functional>
#include <memory>

#include "cairn/storage/local/file_system.h"

namespace cairn::testing {

/// Calls `before` with the number of the operation, from 0, in the thread of the operation, but not
/// for operations on another file system. `under` must outlive the result.
std::unique_ptr<storage::FileSystem> interpose(storage::FileSystem& under,
                                               std::function<void(std::size_t)> before);

}  // namespace cairn::testing
