// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/staging.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cairn/async/staging_pool.h"

namespace cairn {

Staging::Staging(const Writers& writers, Runtime& runtime) : runtime_(runtime) {
  for (const auto& writer : writers) {
    writers_.push_back(writer.get());
    for (const WriteJob& job : writer->jobs()) {
      jobs_.push_back({writer.get(), &job, {}, job.immutable || job.cell_bytes == 0});
    }
  }
}

Result<void> Staging::stage() {
  auto done = copy_what_fits();
  if (done) done = copy_the_rest();
  if (!done) fail(done.error());
  for (ArrayWriter* writer : writers_) writer->forget_changing_arrays();
  return done;
}

// Nothing is written before the pool is full: until then all threads copy.
Result<void> Staging::copy_what_fits() {
  std::atomic<bool> full = false;
  auto done = for_each_index(runtime_.executor(), jobs_.size(), [&](std::size_t i) -> Result<void> {
    Job& job = jobs_[i];
    if (job.copied || full) return {};
    CAIRN_TRY_ASSIGN(auto buffer, runtime_.staging().try_take(job.job->cell_bytes));
    if (buffer) return copy(job, *std::move(buffer));
    full = true;
    return {};
  });
  CAIRN_TRY(std::move(done));
  MutexLock lock(mutex_);
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].copied) hand_over(i);
  }
  begun_ = true;
  changed_.notify_all();
  return {};
}

Result<void> Staging::copy_the_rest() {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].copied) continue;
    CAIRN_TRY_ASSIGN(auto buffer, runtime_.staging().take(jobs_[i].job->cell_bytes));
    if (has_failed()) return {};  // whoever waits for the save hears of it
    CAIRN_TRY(copy(jobs_[i], std::move(buffer)));
    MutexLock lock(mutex_);
    hand_over(i);
  }
  return {};
}

Result<void> Staging::copy(Job& job, Buffer buffer) {
  const std::uint64_t spare = job.job->make_bytes - std::min(job.job->make_bytes, buffer.size());
  const ByteBudget::Lease lease = runtime_.budget().acquire(spare);
  CAIRN_TRY_ASSIGN(const ByteSpan cells, job.writer->cells(*job.job, buffer));
  if (cells.data() != buffer.data() && !cells.empty())
    std::memcpy(buffer.mutable_bytes().data(), cells.data(), cells.size());
  job.staged = buffer.slice(0, cells.size());
  job.copied = true;
  return {};
}

void Staging::hand_over(std::size_t index) {
  if (failure_) {
    jobs_[index].staged = {};
    return;
  }
  ++handed_over_;
  ready_.push_back(index);
  changed_.notify_one();
}

bool Staging::has_failed() {
  MutexLock lock(mutex_);
  return failure_.has_value();
}

void Staging::fail(const Error& error) {
  MutexLock lock(mutex_);
  if (failure_) return;
  failure_ = error;
  for (const std::size_t i : ready_) jobs_[i].staged = {};  // others may wait for the memory
  ready_.clear();
  changed_.notify_all();
}

Result<void> Staging::write(const ProgressSink& sink) {
  std::uint64_t total = 0;
  for (const Job& job : jobs_) total += job.job->bytes;
  wait_for_the_first();
  Progress progress(sink, total);
  // Each index is a thread that writes what comes.
  const std::size_t threads = std::min(runtime_.executor().width(), jobs_.size());
  return for_each_index(runtime_.executor(), threads, [&](std::size_t) -> Result<void> {
    while (const auto index = next()) {
      if (const auto done = write_job(jobs_[*index]); !done) fail(done.error());
      progress.add(jobs_[*index].job->bytes);
    }
    MutexLock lock(mutex_);
    return failure_ ? Result<void>(*failure_) : Result<void>();
  });
}

// The threads are still needed for copying.
void Staging::wait_for_the_first() {
  MutexLock lock(mutex_);
  while (!begun_ && !failure_) changed_.wait(mutex_);
}

std::optional<std::size_t> Staging::next() {
  MutexLock lock(mutex_);
  while (ready_.empty() && handed_over_ < jobs_.size() && !failure_) changed_.wait(mutex_);
  if (failure_ || ready_.empty()) return std::nullopt;
  const std::size_t index = ready_.front();
  ready_.pop_front();
  if (handed_over_ == jobs_.size() && ready_.empty()) changed_.notify_all();
  return index;
}

Result<void> Staging::write_job(Job& job) {
  if (!job.staged.empty()) {
    const ByteBudget::Lease lease = runtime_.budget().acquire(job.job->encode_bytes);
    const Buffer cells = std::exchange(job.staged, {});
    return job.writer->write(*job.job, cells.bytes());
  }
  return write_in_place(*job.writer, *job.job, runtime_);
}

}  // namespace cairn
