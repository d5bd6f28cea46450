// SPDX-License-Identifier: Apache-2.0
// The checkpoint given to a command.
#pragma once

#include <string>

#include "cairn/cli/terminal.h"
#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"

namespace cairn::cli {

/// A CKPT argument: a checkpoint, or a run directory, which means its latest checkpoint; the
/// command prints which.
Result<Checkpoint> open_argument(const std::string& path, const Terminal& terminal,
                                 Runtime& runtime);

}  // namespace cairn::cli
