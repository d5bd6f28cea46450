// SPDX-License-Identifier: Apache-2.0
// The file systems of the machine, through POSIX calls.
#pragma once

#include "cairn/storage/local/file_system.h"

namespace cairn::storage {

/// The machine's. Lives for ever.
FileSystem& posix_file_system();

}  // namespace cairn::storage
