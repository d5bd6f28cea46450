// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/phase_file.h"

#include <algorithm>
#include <utility>

#include "cairn/commit/rank_files.h"

namespace cairn {

namespace {

constexpr std::chrono::seconds kCountedEvery{1};

}  // namespace

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

}  // namespace cairn
