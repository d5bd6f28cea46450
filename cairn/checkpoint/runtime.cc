// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/runtime.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cairn/base/bytes.h"

namespace cairn::inline checkpoint {

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

// Of the control group of this process, if it has a limit: version 2, then version 1.
std::optional<GroupMemory> group_memory() {
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  std::string group;
  while (std::getline(in, line)) {
    if (line.starts_with("0::")) group = line.substr(3);
  }
  const std::string v2 = "/sys/fs/cgroup" + group;
  auto limit = read_number(v2 + "/memory.max");
  auto used = read_number(v2 + "/memory.current");
  if (!limit) {
    limit = read_number("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    used = read_number("/sys/fs/cgroup/memory/memory.usage_in_bytes");
  }
  if (!limit || !used) return std::nullopt;
  return GroupMemory{*limit, *used};
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
      log_(std::move(options.log)) {}

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
  if (const auto group = group_memory())
    available = std::min(available, group->limit - std::min(group->limit, group->used));
  return std::max(available / 2, 100 * kMiB);
}

std::uint64_t largest_possible_memory() {
  const auto total = machine_memory("MemTotal:");
  if (!total) return std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t swap = machine_memory("SwapTotal:").value_or(0);
  const auto group = group_memory();
  return (group ? std::min(*total, group->limit) : *total) + swap;
}

}  // namespace cairn::inline checkpoint
