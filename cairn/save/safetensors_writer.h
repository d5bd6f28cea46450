// SPDX-License-Identifier: Apache-2.0
// One file <base>.safetensors, or parts of at most shard_size with an index. The name of a tensor
// is its key path.
#pragma once

#include <memory>
#include <vector>

#include "cairn/save/array_writer.h"

namespace cairn {

Result<std::unique_ptr<ArrayWriter>> make_safetensors_writer(std::vector<PlannedArray> arrays,
                                                             const ArrayWriterOptions& options);

}  // namespace cairn
