// SPDX-License-Identifier: Apache-2.0
// The checkpoint that a command is given.
#pragma once

#include <string>

#include "cairn/cli/terminal.h"
#include "cairn/layout/checkpoint.h"
#include "cairn/runtime/runtime.h"

namespace cairn::cli {

/// A CKPT argument: a checkpoint, or a run directory whose latest is taken, and said.
Result<Checkpoint> open_argument(const std::string& path, const Terminal& terminal,
                                 Runtime& runtime);

}  // namespace cairn::cli
