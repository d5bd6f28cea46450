// SPDX-License-Identifier: Apache-2.0
// Log entries go to a sink. The library prints nothing itself, except errors that nobody receives.
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

/// Called from any thread, possibly from several at once. Empty: nothing is logged.
using LogSink = std::function<void(const LogEntry&)>;

/// The default sink: errors go to standard error, one line each; other entries are dropped.
/// Threading: safe.
void log_errors(const LogEntry& entry);

}  // namespace cairn
