// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/watch_drawing.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/base/progress_bar.h"
#include "cairn/base/utf8.h"
#include "cairn/cli/watch_json.h"

namespace cairn::cli {

namespace {

std::string ago(const std::string& timestamp, Clock::Wall now) {
  const auto seconds = seconds_since(timestamp, now);
  return seconds ? format_seconds(*seconds) : "";
}

double share_of(std::uint64_t done, std::uint64_t total) {
  if (total == 0) return 0;
  return static_cast<double>(std::min(done, total)) / static_cast<double>(total);
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

bool is_done(const SeenRank& rank) { return rank.reported && rank.failure.empty(); }

/// Those that somebody waits for come first: who failed, who died, who is slow, who is done.
std::vector<SeenRank> slowest_first(std::vector<SeenRank> ranks) {
  const auto order = [](const SeenRank& rank) {
    const int kind = !rank.failure.empty()                   ? 0
                     : !is_done(rank) && rank.alive == false ? 1
                     : !is_done(rank)                        ? 2
                                                             : 3;
    return std::tuple(kind, share_of(rank.done, rank.total), rank.time, rank.rank);
  };
  std::ranges::sort(ranks, {}, order);
  return ranks;
}

std::string activity_of(const SeenRank& rank) {
  if (!rank.failure.empty()) return "failed: " + rank.failure;
  if (rank.phase.empty()) return "has not come yet";
  if (rank.alive == false && !is_done(rank)) return fmt::format("died in phase '{}'", rank.phase);
  return rank.phase;
}

std::string bytes_of(std::uint64_t done, std::uint64_t total) {
  return total == 0 ? "" : fmt::format("{} of {}", format_bytes(done), format_bytes(total));
}

class Drawing {
 public:
  Drawing(const RunStatus& status, const DrawingRoom& room) : status_(status), room_(room) {}

  std::vector<Styled> lines() && {
    head();
    for (const SaveStatus& save : status_.saves) {
      if (save.in_flight()) draw(save);
    }
    for (const SaveStatus& save : status_.saves) {
      if (!save.in_flight()) draw_left_over(save);
    }
    return std::move(lines_);
  }

 private:
  void add(const std::string& text, Style style = Style::kPlain) {
    lines_.push_back({printable(text), style});
  }

  void head() {
    add(fmt::format("{}  {}", status_.path, latest()), Style::kBold);
    if (status_.owner) {
      const OwnerFile& owner = status_.owner->file;
      add(fmt::format("{} process {} on {}", status_.owner->alive ? "saved by" : "was saved by",
                      owner.process, owner.host),
          Style::kDim);
    }
    if (status_.request) {
      add(status_.request->empty() ? "a save is asked for"
                                   : fmt::format("a save is asked for: {}", *status_.request));
    }
    add(disk(), Style::kDim);
  }

  std::string latest() const {
    const std::string count = counted(status_.checkpoints, "checkpoint");
    if (!status_.latest)
      return status_.checkpoints == 0 ? "no checkpoint with a mark yet" : count + ", none is good";
    const RunEntry& entry = *status_.latest;
    std::string text = fmt::format("{}, the latest {}", count, entry.name);
    if (entry.step) text += fmt::format(", step {}", *entry.step);
    if (const auto age = ago(entry.timestamp, status_.time); !age.empty())
      text += fmt::format(", {} ago", age);
    return text;
  }

  std::string disk() const {
    std::string text;
    if (status_.bytes) text += fmt::format("{} in it, ", format_bytes(*status_.bytes));
    if (status_.free_bytes && status_.disk_bytes) {
      text += fmt::format("{} free of {}", format_bytes(*status_.free_bytes),
                          format_bytes(*status_.disk_bytes));
    }
    if (status_.leftovers > 0)
      text += fmt::format("; {}, which `cairn gc` removes", counted(status_.leftovers, "leftover"));
    return text;
  }

  void draw(const SaveStatus& save) {
    const AttemptView& view = save.attempt.view;
    const bool decided = view.state == AttemptState::kDecided;
    add(fmt::format("{}  {}, process {} on {}, for {}{}", file_name(save.path),
                    counted(save.attempt.ranks.size(), "rank"), view.process, view.host,
                    ago(view.started, status_.time),
                    decided ? "; it is saved and being put in place" : ""),
        Style::kBold);
    add("  " + progress(save));
    const auto ranks = slowest_first(save.attempt.ranks);
    const std::size_t shown = std::min(ranks.size(), room_.ranks);
    draw(std::vector(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(shown)));
    if (shown < ranks.size()) {
      const auto done =
          std::count_if(ranks.begin() + static_cast<std::ptrdiff_t>(shown), ranks.end(), is_done);
      add(fmt::format("  and {} more, of which {} have written all", ranks.size() - shown, done),
          Style::kDim);
    }
  }

  std::string progress(const SaveStatus& save) const {
    const double share = share_of(save.done(), save.total());
    std::string text =
        fmt::format("{} {:3}%  {}", draw_bar(share, room_.terminal), static_cast<int>(share * 100),
                    bytes_of(save.done(), save.total()));
    if (save.bytes_per_second) {
      const auto rate = static_cast<std::uint64_t>(*save.bytes_per_second);
      text += fmt::format("  {}/s", format_bytes(rate));
      if (rate > 0 && save.done() < save.total()) {
        const auto left = static_cast<double>(save.total() - save.done()) / *save.bytes_per_second;
        text += fmt::format("  {} left", format_seconds(left));
      }
    }
    return text;
  }

  void draw(const std::vector<SeenRank>& ranks) {
    std::vector<std::vector<std::string>> rows{
        {"  RANK", "DOES", "FOR", "UNCHANGED", "WRITTEN", "PROCESS"}};
    for (const SeenRank& rank : ranks) {
      rows.push_back({fmt::format("{}", rank.rank), activity_of(rank),
                      ago(rank.since, status_.time), ago(rank.time, status_.time),
                      bytes_of(rank.done, rank.total),
                      rank.phase.empty() ? "" : fmt::format("{} on {}", rank.process, rank.host)});
    }
    const auto texts = table(std::move(rows), {0, 2, 3});
    add(texts[0], Style::kDim);
    for (std::size_t row = 0; row < ranks.size(); ++row) {
      const SeenRank& rank = ranks[row];
      const bool bad = !rank.failure.empty() || (rank.alive == false && !is_done(rank));
      add(texts[row + 1], bad ? Style::kRed : Style::kPlain);
    }
  }

  void draw_left_over(const SaveStatus& save) {
    const AttemptView& view = save.attempt.view;
    const std::string why =
        view.state == AttemptState::kAbandoned
            ? "was given up" + (save.attempt.failure.empty() ? "" : ": " + save.attempt.failure)
            : fmt::format("was left by process {} on {}, which is dead", view.process, view.host);
    add(fmt::format("{}  a save that {}", file_name(save.path), why), Style::kRed);
  }

  const RunStatus& status_;
  const DrawingRoom& room_;
  std::vector<Styled> lines_;
};

}  // namespace

std::vector<Styled> draw_run(const RunStatus& status, const DrawingRoom& room) {
  return Drawing(status, room).lines();
}

std::vector<Styled> draw_run_on(const RunStatus& status, const Screen& screen) {
  const std::size_t rows = std::max<std::size_t>(screen.rows, 2) - 1;  // the cursor has the last
  DrawingRoom room{.ranks = rows, .terminal = true};
  std::vector<Styled> lines = draw_run(status, room);
  while (lines.size() > rows && room.ranks > 1) {
    --room.ranks;
    lines = draw_run(status, room);
  }
  if (lines.size() > rows) {
    const std::size_t more = lines.size() - rows + 1;
    lines.resize(rows - 1);
    lines.push_back({fmt::format("and {} more", counted(more, "line")), Style::kDim});
  }
  for (Styled& line : lines) line.text = cut(line.text, screen.columns);
  return lines;
}

}  // namespace cairn::cli
