// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/plan_drawing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/cli/terminal.h"

namespace cairn::cli {

namespace {

constexpr Index kMostTextCells = 64;  // along each dimension
constexpr std::size_t kWidestText = 132;
constexpr std::size_t kMostListed = 4;

/// The dimensions that are shown, ascending; fewer than two where there are no more.
std::vector<std::size_t> shown_dimensions(const Shape& shape, const Shape& grid) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1) dims.push_back(d);
  }
  std::ranges::sort(dims, {}, [&](std::size_t d) { return std::pair(grid[d] <= 1, d); });
  if (dims.size() > 2) dims.resize(2);
  std::ranges::sort(dims);
  return dims;
}

void merge(std::vector<int>& into, const std::vector<int>& more) {
  std::vector<int> both;
  std::ranges::set_union(into, more, std::back_inserter(both));
  into = std::move(both);
}

/// Where something lies along the two dimensions.
class View {
 public:
  View(const Shape& shape, const Shape& grid) : dims_(shown_dimensions(shape, grid)) {}

  Index row(const Shape& at) const { return dims_.empty() ? 0 : at[dims_[0]]; }
  Index column(const Shape& at) const { return dims_.size() < 2 ? 0 : at[dims_[1]]; }
  Index row_end(const Shape& at) const { return dims_.empty() ? 1 : at[dims_[0]]; }
  Index column_end(const Shape& at) const { return dims_.size() < 2 ? 1 : at[dims_[1]]; }

  Drawing::Axis axis(std::size_t n, const Shape& shape, const LeafReaders& leaf) const {
    if (n >= dims_.size()) return {};
    const std::size_t d = dims_[n];
    return {fmt::format("dimension {}", d), shape[d], leaf.cell_shape[d], leaf.grid[d]};
  }

 private:
  std::vector<std::size_t> dims_;
};

std::vector<Drawing::Part> project(const View& view, const std::vector<LeafReaders::Part>& held) {
  using Edges = std::tuple<Index, Index, Index, Index>;
  std::map<Edges, std::vector<int>> readers;
  for (const LeafReaders::Part& part : held) {
    merge(readers[{view.row(part.box.begin), view.column(part.box.begin),
                   view.row_end(part.box.end), view.column_end(part.box.end)}],
          *part.ranks);
  }
  std::vector<Drawing::Part> parts;
  for (auto& [edges, ranks] : readers) {
    const auto& [top, left, bottom, right] = edges;
    parts.push_back({top, bottom, left, right, std::move(ranks)});
  }
  return parts;
}

std::string describe(const PlacedArray& array, const LeafReaders& leaf) {
  const std::string cells =
      fmt::format("{} of {}", counted(leaf.readers.size(), "chunk"), to_string(leaf.cell_shape));
  const std::string parts =
      fmt::format("one piece, drawn in parts of {}", to_string(leaf.cell_shape));
  const NamedSharding* named = array.sharding.named();
  return fmt::format("{} {}, {}{}{}", dtype_name(array.array().stored.dtype),
                     to_string(array.array().stored.shape), leaf.parts ? parts : cells,
                     named != nullptr ? ", " + named->spec().to_string() : "",
                     array.told ? ", read by rank 0 for all" : "");
}

std::string range_text(const Drawing::Axis& axis, Index cell) {
  return fmt::format("{}:{}", cell * axis.step, std::min((cell + 1) * axis.step, axis.size));
}

/// Rows begin with the range of indices, columns with the first index.
std::vector<std::string> grid_table(const Drawing& drawing) {
  const bool flat = drawing.columns.label.empty();
  std::vector<std::vector<std::string>> rows;
  if (!flat) {
    rows.push_back({""});
    for (Index column = 0; column < drawing.columns.cells; ++column)
      rows[0].push_back(fmt::format("{}:", column * drawing.columns.step));
  }
  for (Index row = 0; row < drawing.rows.cells; ++row) {
    rows.push_back({"  " + (drawing.rows.label.empty() ? "" : range_text(drawing.rows, row))});
    for (Index column = 0; column < drawing.columns.cells; ++column)
      rows.back().push_back(rank_list(drawing.readers_at(row, column), drawing.ranks));
  }
  std::vector<std::string> lines = table(std::move(rows), {});
  if (!flat) {
    lines.insert(lines.begin(),
                 fmt::format("  {} down, {} across", drawing.rows.label, drawing.columns.label));
  }
  return lines;
}

bool fits(const Drawing& drawing) {
  return std::max(drawing.rows.cells, drawing.columns.cells) <= kMostTextCells;
}

bool fits(const std::vector<std::string>& lines) {
  return std::ranges::all_of(lines,
                             [](const std::string& line) { return line.size() <= kWidestText; });
}

}  // namespace

Drawing make_drawing(const PlacedArray& array, const LeafReaders& leaf, int ranks) {
  const Shape& shape = array.array().stored.shape;
  const View view(shape, leaf.grid);
  Drawing drawing;
  drawing.title =
      (array.prefix->name.empty() ? "" : array.prefix->name + ": ") + array.array().path.text();
  drawing.about = describe(array, leaf);
  drawing.ranks = ranks;
  drawing.rows = view.axis(0, shape, leaf);
  drawing.columns = view.axis(1, shape, leaf);
  drawing.readers.resize(
      leaf.readers.empty() ? 0
                           : static_cast<std::size_t>(drawing.rows.cells * drawing.columns.cells));
  for (std::size_t cell = 0; cell < leaf.readers.size(); ++cell) {
    const Shape at = leaf.position(cell);
    merge(drawing.readers[static_cast<std::size_t>(view.row(at) * drawing.columns.cells +
                                                   view.column(at))],
          leaf.readers[cell]);
  }
  drawing.held = project(view, leaf.held);
  return drawing;
}

std::string rank_list(const std::vector<int>& some, int ranks) {
  if (some.empty()) return "-";
  if (ranks > 1 && some.size() == static_cast<std::size_t>(ranks)) return "*";
  std::string text;
  std::size_t listed = 0;
  for (std::size_t i = 0; i < some.size(); ++listed) {
    if (listed == kMostListed) return fmt::format("{},+{}", text, some.size() - i);
    std::size_t last = i;
    while (last + 1 < some.size() && some[last + 1] == some[last] + 1) ++last;
    if (last - i < 2) last = i;
    text += (text.empty() ? "" : ",") + std::to_string(some[i]);
    if (last > i) text += fmt::format("-{}", some[last]);
    i = last + 1;
  }
  return text;
}

std::vector<std::string> draw_text(const Drawing& drawing) {
  std::vector<std::string> lines{fmt::format("{}  {}", drawing.title, drawing.about)};
  if (drawing.readers.empty()) {
    lines.emplace_back("  no elements: nothing is read");
    return lines;
  }
  const auto grid = fits(drawing) ? grid_table(drawing) : std::vector<std::string>();
  if (!grid.empty() && fits(grid)) {
    lines.insert(lines.end(), grid.begin(), grid.end());
  } else {
    lines.push_back(
        fmt::format("  {} x {} cells do not fit here; --svg FILE draws them, --json lists them",
                    drawing.rows.cells, drawing.columns.cells));
  }
  return lines;
}

}  // namespace cairn::cli
