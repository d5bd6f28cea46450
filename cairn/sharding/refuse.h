// SPDX-License-Identifier: Apache-2.0
// `refuse`: what this room says of a mesh, a spec, a rule or a shape that makes no sense.
#pragma once

#include <string>
#include <utility>

#include "cairn/base/error.h"

namespace cairn {

inline Error refuse(const char* reason, std::string message) {
  return Error(Code::kInvalidArgument, reason, std::move(message));
}

}  // namespace cairn
