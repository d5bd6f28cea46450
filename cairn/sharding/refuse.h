// SPDX-License-Identifier: Apache-2.0
// `refuse`: makes the errors of this room about invalid meshes, specs, rules and shapes.
#pragma once

#include <string>
#include <utility>

#include "cairn/base/error.h"

namespace cairn {

inline Error refuse(const char* reason, std::string message) {
  return Error(Code::kInvalidArgument, reason, std::move(message));
}

}  // namespace cairn
