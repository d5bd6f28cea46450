// SPDX-License-Identifier: Apache-2.0
// The library prints nothing; what it has to say goes to the sink it was given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cairn::inline base {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogEntry {
  LogLevel level = LogLevel::kInfo;
  const char* event = "";  ///< static token, such as "discovery/torn-skipped"
  std::string message;     ///< a sentence for a person
};

/// Called from any thread, possibly at once from several. Empty: silence.
using LogSink = std::function<void(const LogEntry&)>;

}  // namespace cairn::inline base
