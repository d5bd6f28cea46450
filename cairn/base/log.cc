// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/log.h"

#include <cstdio>

namespace cairn {

void log_errors(const LogEntry& entry) {
  if (entry.level != LogLevel::kError) return;
  std::fprintf(stderr, "cairn: %s [%s]\n", entry.message.c_str(), entry.event);
}

}  // namespace cairn
