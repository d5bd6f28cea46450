// SPDX-License-Identifier: Apache-2.0
// errno to Error, in one table. The reasons are listed in file_system.h.
#pragma once

#include <source_location>
#include <string_view>

#include "cairn/base/error.h"

namespace cairn::storage {

/// `doing` is what was tried ("write 4.0 MiB"), `place` the path: it becomes where().
Error errno_error(int number, std::string_view doing, std::string_view place,
                  std::source_location origin = std::source_location::current());

}  // namespace cairn::storage
