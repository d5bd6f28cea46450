// SPDX-License-Identifier: Apache-2.0
// Meaning of the exit status; documented in docs/guide/command.md.
#pragma once

#include "cairn/base/error.h"

namespace cairn::cli {

constexpr int kGood = 0;
constexpr int kFound = 1;   ///< damage or a difference was found
constexpr int kUsage = 2;   ///< the command line was wrong
constexpr int kFailed = 3;  ///< it could not be done

inline int exit_code_of(const Error& error) {
  if (error.code() == Code::kCorrupt) return kFound;
  return error.code() == Code::kInvalidArgument ? kUsage : kFailed;
}

}  // namespace cairn::cli
