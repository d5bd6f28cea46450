// SPDX-License-Identifier: Apache-2.0
// cairn_demo_draw STRAIGHT.csv KILLED.csv RESUMED.csv RUN OUT.svg: the losses of a training that
// nobody disturbed, of one that was killed and of the one that went on from there, and the
// checkpoints of RUN below them. As text on standard output, and as a drawing.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cairn/cairn.h"

namespace {

using cairn::Result;

struct Point {
  std::int64_t step = 0;
  double loss = 0;
};
using Curve = std::vector<Point>;

struct Story {
  Curve straight, killed, resumed;
  std::vector<std::int64_t> saves;
  std::int64_t resumed_at = 0;
  double highest = 0;

  std::int64_t steps() const { return straight.back().step; }
};

Result<Curve> read_losses(const std::string& path) {
  std::ifstream file(path);
  Curve curve;
  std::string line;
  std::getline(file, line);  // the names of the columns
  while (std::getline(file, line))
    curve.push_back({std::atoll(line.c_str()), std::atof(line.c_str() + line.find(',') + 1)});
  if (!curve.empty()) return curve;
  return cairn::Error(cairn::Code::kNotFound, "demo/no-losses", path + " has no losses");
}

Result<Story> read_story(char** arguments) {
  cairn::Runtime runtime;
  Story story;
  CAIRN_TRY_ASSIGN(story.straight, read_losses(arguments[1]));
  CAIRN_TRY_ASSIGN(story.killed, read_losses(arguments[2]));
  CAIRN_TRY_ASSIGN(story.resumed, read_losses(arguments[3]));
  CAIRN_TRY_ASSIGN(const auto checkpoints, cairn::list_run(arguments[4], runtime));
  for (const cairn::RunEntry& checkpoint : checkpoints) {
    const std::int64_t step = checkpoint.step.value_or(0);
    story.saves.push_back(step);
    if (step < story.killed.back().step) story.resumed_at = std::max(story.resumed_at, step);
  }
  for (const Point& point : story.straight) story.highest = std::max(story.highest, point.loss);
  return story;
}

class TextPlot {
 public:
  explicit TextPlot(const Story& story) : story_(story) {}

  void draw(const Curve& curve, std::int64_t from, char mark) {
    for (const Point& point : curve) {
      if (point.step <= from) continue;
      const double height = point.loss / story_.highest * (kRows - 1);
      rows_.at(kRows - 1 - static_cast<std::size_t>(height)).at(column(point.step)) = mark;
    }
  }

  std::string text() const {
    std::string below(kColumns, '-');
    for (const std::int64_t step : story_.saves) below[column(step)] = '^';
    below[column(story_.killed.back().step)] = 'X';
    std::string out = fmt::format("loss {:.2f}\n", story_.highest);
    for (const std::string& row : rows_)
      out += "  |" + row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
    return out + "  +" + below + fmt::format(" step {}\n", story_.steps());
  }

 private:
  static constexpr std::size_t kRows = 14;
  static constexpr std::size_t kColumns = 72;

  std::size_t column(std::int64_t step) const {
    return static_cast<std::size_t>((step - 1) * std::int64_t{kColumns} / story_.steps());
  }

  const Story& story_;
  std::vector<std::string> rows_ = std::vector<std::string>(kRows, std::string(kColumns, ' '));
};

class Drawing {
 public:
  explicit Drawing(const Story& story) : story_(story) {}

  void curve(const Curve& curve, std::int64_t from, const char* look) {
    std::string points;
    for (const Point& point : curve) {
      if (point.step >= from) points += fmt::format("{:.1f},{:.1f} ", x(point.step), y(point.loss));
    }
    body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, look);
  }

  void checkpoint(std::int64_t step) { mark(x(step), 340, "&#9650;", "fill=\"green\""); }
  void killed(const Point& at) {
    mark(x(at.step), y(at.loss) + 8, "&#10006;", "fill=\"red\" font-size=\"22\"");
  }

  void say(int line, const char* look, const std::string& text) {
    body_ += fmt::format("<text x=\"440\" y=\"{}\" {}>{}</text>\n", 40 + 20 * line, look, text);
  }

  std::string text() const {
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 380\" "
           "font-family=\"sans-serif\" font-size=\"14\">\n"
           "<rect width=\"800\" height=\"380\" fill=\"white\"/>\n"
           "<path d=\"M60 20V320H780\" fill=\"none\" stroke=\"black\"/>\n" +
           fmt::format("<text x=\"52\" y=\"44\" text-anchor=\"end\">{:.2f}</text>\n",
                       story_.highest) +
           "<text x=\"52\" y=\"325\" text-anchor=\"end\">0</text>\n" +
           fmt::format("<text x=\"780\" y=\"362\" text-anchor=\"end\">step {}</text>\n",
                       story_.steps()) +
           body_ + "</svg>\n";
  }

 private:
  double x(std::int64_t step) const {
    return 60 + 720 * static_cast<double>(step) / static_cast<double>(story_.steps());
  }
  double y(double loss) const { return 320 - 280 * loss / story_.highest; }
  void mark(double across, double down, const char* sign, const char* look) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" {}>{}</text>\n",
                         across, down, look, sign);
  }

  const Story& story_;
  std::string body_;
};

std::string draw_text(const Story& story) {
  TextPlot plot(story);
  plot.draw(story.straight, 0, '.');
  plot.draw(story.killed, 0, '4');
  plot.draw(story.resumed, story.resumed_at, '2');
  return plot.text() +
         "  4 on four ranks   2 resumed on two   ^ checkpoint   X killed in the middle of a save\n";
}

std::string draw_svg(const Story& story) {
  constexpr const char* kOrange = "stroke=\"#e07000\" stroke-width=\"2\"";
  constexpr const char* kBlue = "stroke=\"#0060c0\" stroke-width=\"2\"";
  Drawing drawing(story);
  drawing.curve(story.straight, 0, "stroke=\"#d0d0d0\" stroke-width=\"8\"");
  drawing.curve(story.killed, 0, kOrange);
  drawing.curve(story.resumed, story.resumed_at, kBlue);
  for (const std::int64_t step : story.saves) drawing.checkpoint(step);
  drawing.killed(story.killed.back());
  drawing.say(0, "fill=\"#909090\"", "one process, not interrupted");
  drawing.say(1, "fill=\"#e07000\"", "four ranks, killed in the middle of a save");
  drawing.say(2, "fill=\"#0060c0\"",
              fmt::format("two ranks, resumed from step {}", story.resumed_at));
  drawing.say(3, "fill=\"green\"", "&#9650; checkpoint");
  return drawing.text();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: cairn_demo_draw STRAIGHT KILLED RESUMED RUN OUT.svg\n");
    return 2;
  }
  const auto story = read_story(argv);
  if (!story) {
    std::fprintf(stderr, "%s\n", story.error().to_string().c_str());
    return 1;
  }
  std::fputs(draw_text(*story).c_str(), stdout);
  std::ofstream file(argv[5]);
  file << draw_svg(*story) << std::flush;
  return file ? 0 : 1;
}
