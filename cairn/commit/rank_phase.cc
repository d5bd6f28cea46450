// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/rank_phase.h"

#include <algorithm>
#include <utility>

#include "cairn/base/json.h"
#include "cairn/commit/rank_files.h"

namespace cairn {

namespace {

constexpr std::size_t kMaxPhaseBytes = 64 * kKiB;
constexpr std::chrono::seconds kCountedEvery{1};

std::string text_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member != nullptr && member->text() != nullptr ? *member->text() : std::string();
}

std::uint64_t number_in(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  return member != nullptr ? member->unsigned_integer().value_or(0) : 0;
}

}  // namespace

std::string dump_rank_phase(const RankPhase& phase) {
  return dump_json(Json::Object{{"phase", phase.phase},
                                {"done", phase.done},
                                {"total", phase.total},
                                {"since", phase.since},
                                {"time", phase.time},
                                {"host", phase.writer.host},
                                {"process", phase.writer.process},
                                {"boot_id", phase.writer.boot_id}});
}

Result<RankPhase> parse_rank_phase(std::string_view text) {
  const auto json =
      parse_json(text.substr(0, text.find('\n')), JsonLimits{.bytes = kMaxPhaseBytes});
  RankPhase phase;
  if (json) phase.phase = text_in(*json, "phase");
  if (phase.phase.empty())
    return Error(Code::kCorrupt, "ranks/bad-phase", "the phase of a rank is damaged");
  phase.done = number_in(*json, "done");
  phase.total = number_in(*json, "total");
  phase.since = text_in(*json, "since");
  phase.time = text_in(*json, "time");
  phase.writer.host = text_in(*json, "host");
  const Json* process = json->find("process");
  phase.writer.process = process != nullptr ? process->integer().value_or(0) : 0;
  phase.writer.boot_id = text_in(*json, "boot_id");
  return phase;
}

Result<std::unique_ptr<PhaseFile>> PhaseFile::open(const Directory& dest,
                                                   const std::string& attempt, int rank,
                                                   Clock& clock) {
  CAIRN_TRY_ASSIGN(auto file, dest.open_file(attempt + "/" + phase_file(rank), true));
  CAIRN_TRY(file->try_lock());
  return std::unique_ptr<PhaseFile>(new PhaseFile(std::move(file), clock));
}

PhaseFile::PhaseFile(std::unique_ptr<storage::File> file, Clock& clock)
    : file_(std::move(file)), clock_(clock) {
  MutexLock lock(mutex_);
  now_.writer = this_process();
}

Result<void> PhaseFile::enter(std::string_view phase) {
  MutexLock lock(mutex_);
  now_.phase = phase;
  now_.since = format_timestamp(clock_.wall());
  return write();
}

void PhaseFile::count(std::uint64_t done, std::uint64_t total) {
  MutexLock lock(mutex_);
  const bool due = total != now_.total || clock_.monotonic() - written_ >= kCountedEvery;
  now_.done = done;
  now_.total = total;
  if (due) write().ignore_error("no reason to give up a save");
}

// In place and in one operation. Spaces cover the end of a longer line, so that there is one line.
Result<void> PhaseFile::write() {
  written_ = clock_.monotonic();
  now_.time = format_timestamp(clock_.wall());
  std::string text = dump_rank_phase(now_);
  length_ = std::max(length_, text.size());
  text.resize(length_, ' ');
  text += '\n';
  return file_->write_at(0, as_bytes(text));
}

std::optional<SeenPhase> look_at_phase(const Directory& dest, const std::string& file) {
  const auto open = dest.fs().open(dest.handle(), file, {});
  if (!open) return std::nullopt;
  const auto locked = (*open)->is_locked_elsewhere();
  std::string text(kMaxPhaseBytes, '\0');
  const auto got = (*open)->read_at(0, {reinterpret_cast<std::byte*>(text.data()), text.size()});
  if (!got) return std::nullopt;
  text.resize(*got);
  auto said = parse_rank_phase(text);
  if (!said) return std::nullopt;
  SeenPhase seen{*std::move(said), std::nullopt};
  if (locked && (*locked || is_this_host(seen.said.writer.boot_id))) seen.alive = *locked;
  return seen;
}

bool is_this_host(const std::string& boot_id) {
  return !boot_id.empty() && boot_id == this_process().boot_id;
}

}  // namespace cairn
