// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/process_name.h"

#include <fstream>
#include <random>

#include <fmt/format.h>
#include <unistd.h>

namespace cairn {

ProcessName this_process() {
  ProcessName name;
  char host[256] = {};
  if (::gethostname(host, sizeof(host) - 1) == 0) name.host = host;
  name.process = ::getpid();
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, name.boot_id);
  return name;
}

bool is_this_host(const std::string& boot_id) {
  return !boot_id.empty() && boot_id == this_process().boot_id;
}

std::string new_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random());
  return id;
}

}  // namespace cairn
