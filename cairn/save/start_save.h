// SPDX-License-Identifier: Apache-2.0
// The way of a save of trees in memory: by one process or by several.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cairn/save/save_prepared.h"

namespace cairn {

/// A save of trees in memory, by however many ranks there are. With several, what is wrong here is
/// said by begin(), when the others have heard of it.
Result<std::unique_ptr<SaveSteps>> start_save(const std::vector<NamedTree>& trees,
                                              const std::string& path, SaveOptions options,
                                              Runtime& runtime, SaveInternals internals);

}  // namespace cairn
