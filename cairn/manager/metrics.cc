// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/metrics.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/utf8.h"
#include "cairn/commit/process_name.h"

namespace cairn {

namespace {

std::string escaped(std::string_view text) {
  std::string value;
  for (const char c : text.substr(0, valid_utf8_prefix(text))) {
    if (c == '\\' || c == '"') value += '\\';
    value += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return value;
}

std::string name_of_run(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.substr(path.find_last_of('/') + 1);
}

/// Samples with their HELP and TYPE, one after the other.
class Samples {
 public:
  explicit Samples(std::string_view run) : run_(escaped(run)) {}

  template <typename Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    add(name, help, "counter", fmt::format("{}", value));
  }
  template <typename Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    add(name, help, "gauge", fmt::format("{}", value));
  }
  template <typename Number>
  void gauge(std::string_view name, std::string_view help, const std::optional<Number>& value) {
    if (value) gauge(name, help, *value);
  }
  std::string text() && { return std::move(text_); }

 private:
  void add(std::string_view name, std::string_view help, std::string_view type,
           const std::string& value) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{run=\"{3}\"}} {4}\n", name, help,
                         type, run_, value);
  }

  const std::string run_;
  std::string text_;
};

double seconds_of(std::chrono::duration<double> span) { return span.count(); }

std::optional<double> unix_seconds(const std::optional<Clock::Wall>& time) {
  if (!time) return std::nullopt;
  // Of nanoseconds since then a double has not enough digits.
  return static_cast<double>(
             std::chrono::floor<std::chrono::milliseconds>(time->time_since_epoch()).count()) /
         1000;
}

Result<void> replace_file(storage::FileSystem& fs, const std::string& path,
                          const std::string& text) {
  const std::string aside = fmt::format("{}.{}.tmp", path, this_process().process);
  const auto written = [&]() -> Result<void> {
    CAIRN_TRY_ASSIGN(const auto file,
                     fs.open(nullptr, aside,
                             {.access = storage::OpenOptions::Access::kReadWrite, .create = true}));
    CAIRN_TRY(file->truncate(0));
    CAIRN_TRY(file->write_at(0, as_bytes(text)));
    return fs.rename(nullptr, aside, nullptr, path);
  }();
  if (!written) fs.remove_file(nullptr, aside).ignore_error("it may not even be there");
  return written;
}

}  // namespace

std::string format_metrics(const Metrics& metrics, std::string_view run) {
  Samples all(run);
  all.counter("cairn_saves_total", "Saves that were committed since the job began.", metrics.saves);
  all.counter("cairn_save_failures_total", "Saves that failed since the job began.",
              metrics.failures);
  all.gauge("cairn_saves_in_flight", "Saves that are being written.", metrics.in_flight);
  all.gauge("cairn_last_save_step", "Step of the last save that was committed.", metrics.last_step);
  all.gauge("cairn_last_save_timestamp_seconds", "When the last save was committed, Unix time.",
            unix_seconds(metrics.last_time));
  all.gauge("cairn_save_seconds", "How long the last save took, from the call to the commit.",
            metrics.seconds);
  all.gauge("cairn_save_stall_seconds", "How long the last save kept the training from going on.",
            metrics.stall_seconds);
  all.gauge("cairn_save_bytes", "Bytes of elements in the last save.", metrics.bytes);
  all.gauge("cairn_staging_bytes_in_use", "Staging memory in use when a save last began or ended.",
            metrics.staging_in_use);
  all.gauge("cairn_staging_bytes_limit", "Staging memory that saves may use.",
            metrics.staging_limit);
  return std::move(all).text();
}

std::shared_ptr<MetricsFile> MetricsFile::make(std::string path, const std::string& base,
                                               std::shared_ptr<Runtime> runtime) {
  return std::shared_ptr<MetricsFile>(
      new MetricsFile(std::move(path), name_of_run(base), std::move(runtime)));
}

MetricsFile::MetricsFile(std::string path, std::string run, std::shared_ptr<Runtime> runtime)
    : path_(std::move(path)), run_(std::move(run)), runtime_(std::move(runtime)) {}

void MetricsFile::began(const SaveHandle& handle, std::optional<std::int64_t> step,
                        std::chrono::nanoseconds stall) {
  {
    MutexLock lock(mutex_);
    ++now_.in_flight;
    write();
  }
  const Begun save{step, stall, runtime_->clock().monotonic() - stall};
  handle.on_end([self = shared_from_this(), save](const Result<SaveReport>& result) {
    self->ended(result, save);
  });
}

void MetricsFile::ended(const Result<SaveReport>& result, const Begun& save) {
  MutexLock lock(mutex_);
  --now_.in_flight;
  if (!result) {
    ++now_.failures;
    return write();
  }
  ++now_.saves;
  now_.last_step = save.step;
  now_.last_time = runtime_->clock().wall();
  now_.seconds = seconds_of(runtime_->clock().monotonic() - save.called);
  now_.stall_seconds = seconds_of(save.stall);
  now_.bytes = result->attempt.empty() ? std::nullopt : std::optional(result->bytes);
  write();
}

void MetricsFile::failed() {
  MutexLock lock(mutex_);
  ++now_.failures;
  write();
}

void MetricsFile::write() {
  if (runtime_->rank() != 0) return;
  now_.staging_in_use = runtime_->staging().in_use();
  now_.staging_limit = runtime_->staging().limit();
  const auto written = replace_file(runtime_->file_system(), path_, format_metrics(now_, run_));
  if (written || std::exchange(complained_, true)) return;
  runtime_->log(LogLevel::kWarning, "metrics/not-written",
                fmt::format("{} cannot be written: {}", path_, written.error().to_string()));
}

}  // namespace cairn
