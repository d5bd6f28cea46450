// SPDX-License-Identifier: Apache-2.0
// What the library has to say goes to a sink; it prints nothing, but for errors nobody else takes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace cairn {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogEntry {
  LogLevel level = LogLevel::kInfo;
  const char* event = "";  ///< static token, such as "discovery/torn-skipped"
  std::string message;     ///< a sentence for a person
};

/// Called from any thread, possibly at once from several. Empty: silence.
using LogSink = std::function<void(const LogEntry&)>;

/// The sink of programs that set none: errors go to standard error, one line each, the rest
/// nowhere. Threading: safe.
void log_errors(const LogEntry& entry);

}  // namespace cairn
