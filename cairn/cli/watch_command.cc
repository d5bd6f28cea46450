// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/cli/watch_drawing.h"
#include "cairn/cli/watch_json.h"
#include "cairn/manager/signal_watch.h"

namespace cairn::cli {

namespace {

/// So long a key stroke that ends it may take to be noticed.
constexpr std::chrono::milliseconds kAttention{50};

/// Shows looks as they come: over the one before on a terminal, elsewhere those at which something
/// had happened.
class Shown {
 public:
  explicit Shown(const Terminal& terminal) : terminal_(terminal) {}

  void show(const RunStatus& status) {
    if (const auto screen = terminal_.screen()) {
      const auto lines = draw_run_on(status, *screen);
      terminal_.raw(drawn_ == 0 ? "" : fmt::format("\x1b[{}A\r\x1b[J", drawn_));
      write(lines);
      drawn_ = lines.size();
    } else if (std::string state = state_of(status); state != state_) {
      if (terminal_.json()) {
        terminal_.document(run_to_json(status), 0);
      } else {
        terminal_.raw(state_.empty() ? "" : "\n");
        terminal_.line(format_timestamp(status.time));
        write(draw_run(status, {}));
      }
      state_ = std::move(state);
    }
    std::fflush(stdout);
  }

 private:
  void write(const std::vector<Styled>& lines) const {
    for (const Styled& line : lines) terminal_.line({line});
  }

  const Terminal& terminal_;
  std::size_t drawn_ = 0;  // lines
  std::string state_;
};

int look_once(RunWatch& watch, const Terminal& terminal) {
  const auto status = watch.look();
  if (!status) return terminal.fail(status.error());
  if (terminal.json()) {
    terminal.document(run_to_json(*status));
    return kGood;
  }
  const DrawingRoom room{.terminal = terminal.screen().has_value()};
  for (const Styled& line : draw_run(*status, room)) terminal.line({line});
  return kGood;
}

}  // namespace

int watch_command(const WatchArgs& args, const Terminal& terminal, Runtime& runtime) {
  RunWatch watch(args.path, runtime);
  if (args.once) return look_once(watch, terminal);
  const auto signals = SignalWatch::make({.save_and_stop = {SIGINT, SIGTERM}});
  if (!signals) return terminal.fail(signals.error());
  Shown shown(terminal);
  const auto interval = std::chrono::duration_cast<Clock::Mono::duration>(
      std::chrono::duration<double>(args.interval));
  // The first picture is there at once, however many files there are to count.
  auto bytes = terminal.screen() ? RunWatch::Bytes::kLeaveOut : RunWatch::Bytes::kCount;
  while (!(*signals)->should_stop() && std::ferror(stdout) == 0) {
    const auto next = runtime.clock().monotonic() + interval;
    const auto status = watch.look(bytes);
    if (!status) return terminal.fail(status.error());
    shown.show(*status);
    if (std::exchange(bytes, RunWatch::Bytes::kCount) == RunWatch::Bytes::kLeaveOut) continue;
    while (!(*signals)->should_stop() && runtime.clock().monotonic() < next)
      runtime.clock().pause(std::min<Clock::Mono::duration>(kAttention, interval));
  }
  return kGood;
}

}  // namespace cairn::cli
