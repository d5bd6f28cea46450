// SPDX-License-Identifier: Apache-2.0
// A file system on top of another for which names that differ in the case of ASCII letters alone
// are one name, as on many network and desktop file systems.
#pragma once

#include <memory>

#include "cairn/storage/local/file_system.h"

namespace cairn::testing {

/// Names become lower case. `under` must outlive the result.
std::unique_ptr<storage::FileSystem> fold_names(storage::FileSystem& under);

}  // namespace cairn::testing
