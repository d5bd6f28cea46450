// SPDX-License-Identifier: Apache-2.0
// The name of this process, and new unique ids.
#pragma once

#include <cstdint>
#include <string>

namespace cairn {

struct ProcessName {
  std::string host;
  std::int64_t process = 0;
  std::string boot_id;
};
ProcessName this_process();
/// Was it written on this host, since it started?
bool is_this_host(const std::string& boot_id);

/// 32 random hex digits.
std::string new_id();

}  // namespace cairn
