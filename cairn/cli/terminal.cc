// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cairn/base/bytes.h"
#include "cairn/base/progress_bar.h"
#include "cairn/base/utf8.h"
#include "cairn/cli/exit_codes.h"

namespace cairn::cli {

namespace {

/// Understands escape sequences.
bool is_able_terminal() {
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  return !dumb && ::isatty(STDOUT_FILENO) == 1;
}

bool colour_wanted() {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && is_able_terminal();
}

/// Less than this is done before anybody could wonder. Lines stay on the screen, a bar does not.
constexpr std::uint64_t kWorthABar = 32 * kMiB;
constexpr std::uint64_t kWorthLines = 256 * kMiB;

}  // namespace

Terminal::Terminal(bool json)
    : json_(json), colour_(!json && colour_wanted()), error_tty_(::isatty(STDERR_FILENO) == 1) {}

std::optional<Screen> Terminal::screen() const {
  if (json_ || !is_able_terminal()) return std::nullopt;
  winsize size = {};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
    return Screen{};
  return Screen{size.ws_row, size.ws_col};
}

std::string Terminal::shown(const Styled& piece) const {
  std::string text = printable(piece.text);
  if (!colour_ || piece.style == Style::kPlain) return text;
  constexpr std::string_view kCodes[] = {"0", "1", "2", "32", "31"};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<std::size_t>(piece.style)], text);
}

void Terminal::line(std::string_view text) const { raw(printable(text) + "\n"); }

void Terminal::line(std::initializer_list<Styled> pieces) const {
  for (const Styled& piece : pieces) raw(shown(piece));
  raw("\n");
}

void Terminal::lines(const std::vector<std::string>& texts) const {
  for (const std::string& text : texts) line(text);
}

void Terminal::raw(std::string_view bytes) const {
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
}

void Terminal::document(const Json& value, int indent) const {
  raw(dump_json(value, JsonStyle{.indent = indent, .ascii = true}) + "\n");
}

void Terminal::note(std::string_view text) const {
  if (!json_) std::fputs((printable(text) + "\n").c_str(), stderr);
}

int Terminal::fail(const Error& error) const {
  if (json_) {
    document(Json::Object{{"error", Json::Object{{"code", code_name(error.code())},
                                                 {"reason", error.reason()},
                                                 {"where", error.where()},
                                                 {"message", error.message()}}}});
  } else {
    std::fflush(stdout);
    note(fmt::format("cairn: {} [{}]", error.to_string(), error.reason()));
  }
  return exit_code_of(error);
}

ProgressSink Terminal::progress(std::string_view what) const {
  if (json_) return {};
  const auto bar = std::make_shared<ProgressBar>(
      std::string(what), ProgressStyle{.terminal = error_tty_, .lines = 10});
  const std::uint64_t worth = error_tty_ ? kWorthABar : kWorthLines;
  return [bar, worth](std::uint64_t done, std::uint64_t total) {
    if (total >= worth) std::fputs(bar->update(done, total).c_str(), stderr);
  };
}

std::size_t width_of(std::string_view text) {
  // Continuation bytes take no column.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string counted(std::uint64_t number, std::string_view what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

std::string cut(const std::string& text, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && ++width > columns) return text.substr(0, at);
  }
  return text;
}

namespace {

/// One very long name does not make every line as long.
constexpr std::size_t kWidestColumn = 200;

}  // namespace

std::vector<std::string> table(std::vector<std::vector<std::string>> rows,
                               const std::vector<std::size_t>& right) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t c = 0; c < row.size(); ++c) {
      row[c] = printable(row[c]);
      widths[c] = std::max(widths[c], std::min(width_of(row[c]), kWidestColumn));
    }
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::size_t width = width_of(row[c]);
      const std::string pad(widths[c] - std::min(widths[c], width), ' ');
      const bool to_right = std::ranges::find(right, c) != right.end();
      line += (c == 0 ? "" : "  ") + (to_right ? pad + row[c] : row[c] + pad);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace cairn::cli
