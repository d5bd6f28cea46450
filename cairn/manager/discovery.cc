// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/discovery.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/base/uri.h"
#include "cairn/checkpoint/commit.h"

namespace cairn::inline manager {

namespace {

void read_mark(const std::string& text, RunEntry& entry) {
  const auto mark = parse_json(text);
  if (!mark || mark->object() == nullptr) {
    entry.problem = "metadata.json is no JSON object";
    return;
  }
  const Json* step = mark->find("step");
  const Json* timestamp = mark->find("timestamp");
  const Json* temporary = mark->find("is_temporary");
  if (step != nullptr && step->integral()) entry.step = step->integral();
  if (!entry.step) entry.problem = "metadata.json has no step";
  if (timestamp != nullptr && timestamp->text() != nullptr) {
    entry.timestamp = *timestamp->text();
    if (const auto time = parse_timestamp(entry.timestamp)) entry.time = *time;
  }
  entry.is_temporary = temporary != nullptr && temporary->boolean().value_or(false);
}

std::string last_component(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// Nothing if the directory is no checkpoint at all.
std::optional<RunEntry> look_at(const std::string& path, Runtime& runtime) {
  RunEntry entry;
  entry.path = path;
  entry.name = last_component(path);
  const auto snapshot = take_snapshot(runtime.file_system(), path);
  if (!snapshot) {
    if (snapshot.error().code() == Code::kNotFound) return std::nullopt;
    entry.problem = snapshot.error().to_string();
    return entry;
  }
  if (!snapshot->record && !snapshot->mark && snapshot->attempts.empty()) return std::nullopt;
  entry.torn = snapshot->torn;
  if (snapshot->record) entry.step = snapshot->record->step;
  if (snapshot->mark) {
    entry.marked = true;
    read_mark(*snapshot->mark, entry);
  }
  if (entry.torn) entry.problem = "an unfinished save lies in it";
  if (!snapshot->record && !snapshot->mark) entry.problem = "only an unfinished save lies in it";
  return entry;
}

bool newer(const RunEntry& a, const RunEntry& b) {
  const auto rank = [](const RunEntry& entry) {
    return std::tuple(entry.step.value_or(-1), entry.time.value_or(Clock::Wall::min()), entry.name);
  };
  return rank(a) > rank(b);
}

}  // namespace

Result<std::vector<RunEntry>> list_run(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(base));
  storage::FileSystem& fs = runtime.file_system();
  CAIRN_TRY_ASSIGN(
      const auto directory,
      fs.open(nullptr, uri.path,
              {.access = storage::OpenOptions::Access::kDirectory, .follow_links = true}));
  CAIRN_TRY_ASSIGN(const auto children, fs.list(*directory));
  std::vector<RunEntry> entries;
  if (auto self = look_at(uri.path, runtime)) entries.push_back(*std::move(self));
  for (const storage::DirEntry& child : children) {
    if (child.name.starts_with('.') || child.kind == storage::FileKind::kFile) continue;
    if (auto entry = look_at(uri.path + "/" + child.name, runtime))
      entries.push_back(*std::move(entry));
  }
  std::ranges::sort(entries, newer);
  return entries;
}

Result<std::optional<std::string>> find_latest_checkpoint(const std::string& base,
                                                          Runtime& runtime) {
  auto entries = list_run(base, runtime);
  if (!entries) {
    if (entries.error().code() == Code::kNotFound) return std::optional<std::string>();
    return std::move(entries).error();
  }
  for (const RunEntry& entry : *entries) {
    if (!entry.marked) continue;
    if (entry.problem.empty()) return std::optional(entry.path);
    runtime.log(LogLevel::kWarning, "discovery/skipped",
                fmt::format("{} was skipped: {}", entry.path, entry.problem));
  }
  return std::optional<std::string>();
}

}  // namespace cairn::inline manager
