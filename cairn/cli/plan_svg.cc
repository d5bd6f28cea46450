// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/plan_svg.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cairn/base/utf8.h"

namespace cairn::cli {

namespace {

constexpr std::size_t kMostShapes = 16384;
constexpr std::size_t kMostBands = 6;
constexpr int kMostLegend = 32;
constexpr double kMargin = 24;
constexpr double kTop = 84;
constexpr double kLeft = 96;
constexpr double kLegendRow = 20;
constexpr double kLegendColumn = 88;

/// Light enough for dark text; ranks take them in turn.
constexpr std::array<std::string_view, 12> kColours{"#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99",
                                                    "#cab2d6", "#ffff99", "#8dd3c7", "#e5c494",
                                                    "#bebada", "#fccde5", "#ccebc5", "#9fb8e8"};
constexpr std::string_view kMany = "#d9d9d9";

std::string_view colour_of(int rank) {
  return kColours[static_cast<std::size_t>(rank) % kColours.size()];
}

/// Text for XML 1.0, which has no way to write control characters.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const bool writable =
        c.size > 0 && c.code >= 0x20 && c.code != 0x7f && c.code != 0xfffe && c.code != 0xffff;
    const std::size_t size = std::max<std::size_t>(c.size, 1);
    if (!writable) {
      out += "\xef\xbf\xbd";
    } else if (c.code == '&') {
      out += "&amp;";
    } else if (c.code == '<') {
      out += "&lt;";
    } else if (c.code == '>') {
      out += "&gt;";
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

class Svg {
 public:
  explicit Svg(const Drawing& drawing)
      : drawing_(drawing),
        width_(std::clamp(72.0 * static_cast<double>(drawing.columns.cells), 360.0, 1440.0)),
        height_(std::clamp(36.0 * static_cast<double>(drawing.rows.cells), 144.0, 1440.0)) {}

  std::string draw() {
    const int listed = std::min(drawing_.ranks, kMostLegend);
    const int across = std::max(1, static_cast<int>(width_ / kLegendColumn));
    const int lines = (listed + across - 1) / across + (drawing_.ranks > listed ? 1 : 0);
    const double bottom = kTop + height_ + kMargin;
    const double total_width = kLeft + width_ + kMargin;
    const double total_height = bottom + kLegendRow * lines + kMargin;
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:g}\" height=\"{1:g}\" viewBox=\"0 0 "
        "{0:g} {1:g}\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n",
        total_width, total_height);
    out_ += fmt::format("<title>{}</title>\n", escaped(drawing_.title));
    rectangle(0, 0, total_width, total_height, "fill=\"#ffffff\"");
    text(kMargin, 28, "font-size=\"16\" font-weight=\"bold\"", drawing_.title);
    text(kMargin, 48, "", drawing_.about);
    axes();
    each_cell(&Svg::draw_cell);
    outlines();
    each_cell(&Svg::draw_label);
    legend(bottom, across, listed);
    return std::move(out_) + "</svg>\n";
  }

 private:
  double x(Index element) const {
    return kLeft +
           width_ * static_cast<double>(element) / static_cast<double>(drawing_.columns.size);
  }
  double y(Index element) const {
    return kTop + height_ * static_cast<double>(element) / static_cast<double>(drawing_.rows.size);
  }

  void rectangle(double left, double top, double width, double height, std::string_view style) {
    out_ += fmt::format("<rect x=\"{:.6g}\" y=\"{:.6g}\" width=\"{:.6g}\" height=\"{:.6g}\" {}/>\n",
                        left, top, width, height, style);
  }

  void text(double at_x, double at_y, std::string_view style, std::string_view words) {
    out_ += fmt::format("<text x=\"{:.6g}\" y=\"{:.6g}\"{}{}>{}</text>\n", at_x, at_y,
                        style.empty() ? "" : " ", style, escaped(words));
  }

  static std::string axis_text(const Drawing::Axis& axis) {
    return axis.label.empty() ? "" : fmt::format("{}: {}", axis.label, axis.size);
  }

  void axes() {
    text(kLeft + width_ / 2, kTop - 10, "text-anchor=\"middle\"", axis_text(drawing_.columns));
    const double middle = kTop + height_ / 2;
    text(kLeft - 14, middle,
         fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {:.6g} {:.6g})\"", kLeft - 14,
                     middle),
         axis_text(drawing_.rows));
  }

  struct Rectangle {
    double left;
    double top;
    double width;
    double height;
  };

  Rectangle cell_of(Index row, Index column) const {
    const Drawing::Axis& down = drawing_.rows;
    const Drawing::Axis& across = drawing_.columns;
    const double left = x(column * across.step);
    const double top = y(row * down.step);
    return {left, top, x(std::min((column + 1) * across.step, across.size)) - left,
            y(std::min((row + 1) * down.step, down.size)) - top};
  }

  void each_cell(void (Svg::*draw_one)(const Rectangle&, const std::vector<int>&)) {
    for (Index row = 0; row < drawing_.rows.cells; ++row) {
      for (Index column = 0; column < drawing_.columns.cells; ++column)
        (this->*draw_one)(cell_of(row, column), drawing_.readers_at(row, column));
    }
  }

  std::string ranks_text(const std::vector<int>& ranks) const {
    return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks, drawing_.ranks);
  }

  void draw_cell(const Rectangle& cell, const std::vector<int>& readers) {
    out_ += fmt::format("<g class=\"cell\"><title>read by {}</title>\n", ranks_text(readers));
    const bool banded = !readers.empty() && readers.size() <= kMostBands;
    const std::size_t bands = banded ? readers.size() : 1;
    const double width = cell.width / static_cast<double>(bands);
    for (std::size_t i = 0; i < bands; ++i) {
      rectangle(cell.left + width * static_cast<double>(i), cell.top, width, cell.height,
                fmt::format("fill=\"{}\"", banded ? colour_of(readers[i]) : kMany));
    }
    rectangle(cell.left, cell.top, cell.width, cell.height,
              "fill=\"none\" stroke=\"#888888\" stroke-width=\"0.5\"");
    out_ += "</g>\n";
  }

  // On a light ground, because outlines may run through the middle of a cell.
  void draw_label(const Rectangle& cell, const std::vector<int>& readers) {
    const std::string words = rank_list(readers, drawing_.ranks);
    const double width = 7.0 * static_cast<double>(words.size()) + 8;
    if (cell.height < 18 || cell.width < width + 4) return;
    const double middle_x = cell.left + cell.width / 2;
    const double middle_y = cell.top + cell.height / 2;
    rectangle(middle_x - width / 2, middle_y - 8, width, 16,
              "rx=\"4\" fill=\"#ffffff\" fill-opacity=\"0.8\"");
    text(middle_x, middle_y + 4, "text-anchor=\"middle\"", words);
  }

  void outlines() {
    for (const Drawing::Part& part : drawing_.held) {
      out_ += fmt::format(
          "<g class=\"held\"><title>held by {}</title>\n",
          (part.ranks.size() == 1 ? "rank " : "ranks ") + rank_list(part.ranks, drawing_.ranks));
      rectangle(x(part.left), y(part.top), x(part.right) - x(part.left),
                y(part.bottom) - y(part.top),
                "fill=\"none\" stroke=\"#222222\" stroke-width=\"2\"");
      out_ += "</g>\n";
    }
  }

  void legend(double top, int across, int listed) {
    for (int rank = 0; rank < listed; ++rank) {
      const double left = kLeft + kLegendColumn * (rank % across);
      const int row = rank / across;
      const double line = top + kLegendRow * row;
      rectangle(left, line, 14, 14, fmt::format("fill=\"{}\" stroke=\"#888888\"", colour_of(rank)));
      text(left + 20, line + 11, "", fmt::format("rank {}", rank));
    }
    if (drawing_.ranks == listed) return;
    const int rows = (listed + across - 1) / across;
    const double line = top + kLegendRow * rows;
    text(kLeft, line + 11, "",
         fmt::format("and {} more ranks, in the same colours in turn", drawing_.ranks - listed));
  }

  const Drawing& drawing_;
  const double width_;
  const double height_;
  std::string out_;
};

}  // namespace

Result<std::string> draw_svg(const Drawing& drawing) {
  if (drawing.readers.empty()) {
    return Error(Code::kInvalidArgument, "plan/nothing-to-draw",
                 fmt::format("leaf {} has no elements; choose another with --leaf", drawing.title));
  }
  if (drawing.readers.size() > kMostShapes || drawing.held.size() > kMostShapes) {
    return Error(Code::kInvalidArgument, "plan/too-large-to-draw",
                 fmt::format("leaf {} would take more than {} shapes; choose another with --leaf",
                             drawing.title, kMostShapes));
  }
  return Svg(drawing).draw();
}

}  // namespace cairn::cli
