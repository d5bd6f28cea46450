// SPDX-License-Identifier: Apache-2.0
// Makes the save of trees in memory: by one process or by several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/save/save_prepared.h"

namespace cairn {

/// A save of trees in memory, by any number of ranks. With several, begin() returns errors of the
/// arguments, once the others know them.
Result<std::unique_ptr<SaveSteps>> start_save(const std::vector<NamedTree>& trees,
                                              const std::string& path, SaveOptions options,
                                              Runtime& runtime, SaveInternals internals);

}  // namespace cairn
