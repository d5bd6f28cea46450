// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/terminal.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cairn/base/bytes.h"
#include "cairn/base/human.h"
#include "cairn/cli/exit_codes.h"

namespace cairn::cli {

namespace {

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return (no_colour == nullptr || *no_colour == '\0') && !dumb && ::isatty(STDOUT_FILENO) == 1;
}

std::size_t width_of(std::string_view text) {
  // Continuation bytes of UTF-8 take no column.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Less than this is done before anybody could wonder. Lines stay on the screen, a bar does not.
constexpr std::uint64_t kWorthABar = 32 * kMiB;
constexpr std::uint64_t kWorthLines = 256 * kMiB;

/// State of one bar, shared by the copies of its sink.
class Bar {
 public:
  Bar(std::string what, bool terminal) : what_(std::move(what)), terminal_(terminal) {}

  void update(std::uint64_t done, std::uint64_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (total < (terminal_ ? kWorthABar : kWorthLines)) return;
    const bool last = done >= total;
    if (terminal_) {
      if (!last && now - drawn_ < std::chrono::milliseconds(80)) return;
      drawn_ = now;
      draw(done, total, now);
      if (last && !ended_) std::fputs("\n", stderr);
      ended_ = last;
      return;
    }
    const std::uint64_t tenth = total == 0 ? 10 : done * 10 / total;
    if (tenth == tenth_ || ended_) return;
    tenth_ = tenth;
    ended_ = last;
    std::fputs(fmt::format("{} {:3}% {} of {}\n", what_, tenth * 10, format_bytes(done),
                           format_bytes(total))
                   .c_str(),
               stderr);
  }

 private:
  void draw(std::uint64_t done, std::uint64_t total,
            std::chrono::steady_clock::time_point now) const {
    const double seconds = std::chrono::duration<double>(now - began_).count();
    const double share = total == 0 ? 1.0 : static_cast<double>(done) / static_cast<double>(total);
    const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
    const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
    constexpr int kWidth = 28;
    const int full = static_cast<int>(share * kWidth);
    std::string bar;
    for (int i = 0; i < kWidth; ++i) bar += i < full ? "\u2588" : "\u2591";
    const std::string text = fmt::format(
        "\r{:<10} {} {:3.0f}%  {} of {}  {}/s  {}\x1b[K", what_, bar, share * 100,
        format_bytes(done), format_bytes(total), format_bytes(static_cast<std::uint64_t>(rate)),
        done >= total ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} s left", left));
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
  }

  const std::string what_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point drawn_;
  std::uint64_t tenth_ = 11;
  bool ended_ = false;
};

}  // namespace

Terminal::Terminal(bool json)
    : json_(json), colour_(!json && colour_wanted()), error_tty_(::isatty(STDERR_FILENO) == 1) {}

std::string Terminal::styled(Style style, std::string_view text) const {
  if (!colour_ || style == Style::kPlain) return std::string(text);
  constexpr std::string_view kCodes[] = {"0", "1", "2", "32", "31"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(style)], text);
}

void Terminal::write(std::string_view text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Terminal::line(std::string_view text) const {
  write(text);
  write("\n");
}

void Terminal::document(const Json& value) const { line(dump_json(value, JsonStyle{.indent = 2})); }

void Terminal::note(std::string_view text) const {
  if (!json_) std::fputs(fmt::format("{}\n", text).c_str(), stderr);
}

int Terminal::fail(const Error& error) const {
  if (json_) {
    document(Json::Object{{"error", Json::Object{{"code", code_name(error.code())},
                                                 {"reason", error.reason()},
                                                 {"where", error.where()},
                                                 {"message", error.message()}}}});
  } else {
    std::fflush(stdout);
    std::fputs(fmt::format("cairn: {} [{}]\n", error.to_string(), error.reason()).c_str(), stderr);
  }
  return exit_code_of(error);
}

ProgressSink Terminal::progress(std::string_view what) const {
  if (json_) return {};
  const auto bar = std::make_shared<Bar>(std::string(what), error_tty_);
  return [bar](std::uint64_t done, std::uint64_t total) { bar->update(done, total); };
}

std::string counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string table(const std::vector<std::vector<std::string>>& rows,
                  const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - width_of(row[c]), ' ');
      const bool to_right = std::ranges::find(right, c) != right.end();
      line += (c == 0 ? "" : "  ") + (to_right ? pad + row[c] : row[c] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace cairn::cli
