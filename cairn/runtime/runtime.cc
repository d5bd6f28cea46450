// SPDX-License-Identifier: Apache-2.0
#include "cairn/runtime/runtime.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "cairn/async/caught.h"
#include "cairn/base/bytes.h"
#include "cairn/base/human.h"
#include "cairn/storage/local/posix.h"

namespace cairn {

namespace {

std::size_t thread_count(std::size_t asked) {
  if (asked != 0) return asked;
  return std::max<std::size_t>(4, std::thread::hardware_concurrency());
}

std::uint64_t budget_bytes(std::uint64_t asked) {
  if (asked != 0) return asked;
  return std::min<std::uint64_t>(kGiB, estimate_available_memory() / 4);
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// A row of /proc/meminfo.
std::optional<std::uint64_t> machine_memory(std::string_view row) {
  std::ifstream in("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  std::string unit;
  while (in >> name >> kib) {
    if (name == row) return kib * kKiB;
    std::getline(in, unit);
  }
  return std::nullopt;
}

struct GroupMemory {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
};

/// Where control groups of one version lie, and their files.
struct GroupFiles {
  const char* root;
  const char* limit;
  const char* used;
};

// Of a group and those around it, which limit it too. In a container the path may be that of the
// host, and the root is the container's own.
void add_groups(const GroupFiles& files, std::string group, std::vector<GroupMemory>& found) {
  while (true) {
    if (group == "/") group.clear();
    const std::string directory = files.root + group + "/";
    const auto limit = read_number(directory + files.limit);
    const auto used = read_number(directory + files.used);
    if (limit && used) found.push_back({*limit, *used});
    if (group.empty()) return;
    group.resize(group.rfind('/'));
  }
}

// The limits on this process: of version 2, and of the memory controller of version 1.
std::vector<GroupMemory> group_memory() {
  std::ifstream in("/proc/self/cgroup");
  std::vector<GroupMemory> found;
  for (std::string line; std::getline(in, line);) {
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos || second + 1 == line.size() || line[second + 1] != '/')
      continue;
    const std::string group = line.substr(second + 1);
    const std::string controllers =
        "," + line.substr(line.find(':') + 1, second - line.find(':') - 1) + ",";
    if (line.starts_with("0::"))
      add_groups({"/sys/fs/cgroup", "memory.max", "memory.current"}, group, found);
    if (controllers.find(",memory,") != std::string::npos)
      add_groups({"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"}, group,
                 found);
  }
  return found;
}

}  // namespace

Runtime::Runtime(RuntimeOptions options)
    : executor_(options.threads == 1 ? make_inline_executor()
                                     : make_thread_pool(thread_count(options.threads))),
      budget_(budget_bytes(options.memory_bytes)),
      file_system_(options.file_system != nullptr ? options.file_system
                                                  : &storage::posix_file_system()),
      coordinator_(options.coordinator),
      clock_(options.clock != nullptr ? options.clock : &system_clock()),
      staging_(options.staging_bytes != 0 ? options.staging_bytes : estimate_available_memory(),
               *clock_),
      staging_idle_(options.staging_idle),
      log_(std::move(options.log)) {
  prepare_for_exceptions();
}

std::unique_ptr<Runtime> Runtime::on_one_thread() const {
  return std::make_unique<Runtime>(RuntimeOptions{.threads = 1,
                                                  .memory_bytes = budget_.limit(),
                                                  .file_system = file_system_,
                                                  .coordinator = coordinator_,
                                                  .clock = clock_,
                                                  .log = log_});
}

void Runtime::watch_staging() {
  std::call_once(watched_, [this] {
    const auto often = std::chrono::duration_cast<std::chrono::milliseconds>(staging_idle_ / 4);
    staging_watch_ = ticker_.every(std::max(often, std::chrono::milliseconds(10)),
                                   [this] { staging_.release_idle(staging_idle_); });
  });
}

int Runtime::rank() const { return coordinator_ != nullptr ? coordinator_->rank() : 0; }
int Runtime::ranks() const { return coordinator_ != nullptr ? coordinator_->count() : 1; }

void Runtime::log(LogLevel level, const char* event, std::string message) const {
  if (log_) log_(LogEntry{level, event, std::move(message)});
}

std::uint64_t estimate_available_memory() {
  std::uint64_t available = machine_memory("MemAvailable:").value_or(0);
  for (const GroupMemory& group : group_memory())
    available = std::min(available, group.limit - std::min(group.limit, group.used));
  return std::max(available / 2, 100 * kMiB);
}

std::uint64_t memory_of_machine() {
  auto total = machine_memory("MemTotal:");
  if (!total) return std::numeric_limits<std::uint64_t>::max();
  for (const GroupMemory& group : group_memory()) total = std::min(*total, group.limit);
  return *total + machine_memory("SwapTotal:").value_or(0);
}

std::uint64_t largest_possible_memory() {
  const std::uint64_t most = memory_of_machine();
  rlimit space{};  // RLIM_INFINITY is the largest number
  return ::getrlimit(RLIMIT_AS, &space) == 0 ? std::min<std::uint64_t>(most, space.rlim_cur) : most;
}

Result<void> check_possible_memory(std::uint64_t bytes, std::string_view what,
                                   std::string_view advice) {
  if (bytes < 256 * kMiB) return {};
  const std::uint64_t most = largest_possible_memory();
  if (bytes <= most) return {};
  return Error(
      Code::kResourceExhausted, "load/no-memory",
      fmt::format("{} needs {}, and this process can have at most {}{}{}", what,
                  format_bytes(bytes), format_bytes(most), advice.empty() ? "" : ": ", advice));
}

}  // namespace cairn
