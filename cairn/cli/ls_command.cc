// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/run/discovery.h"

namespace cairn::cli {

namespace {

/// What `ls` says of one checkpoint.
struct Line {
  std::string name;
  std::string path;
  std::optional<std::int64_t> step;
  std::string time;
  std::string kind;
  std::vector<std::string> prefixes;
  std::uint64_t leaves = 0;
  std::uint64_t bytes = 0;
  bool is_temporary = false;
  bool marked = false;
  bool pinned = false;
  bool abandoned = false;
  std::optional<std::uint64_t> number;
  std::string problem;

  std::string prefix_text() const {
    std::string text;
    for (const std::string& prefix : prefixes) text += (text.empty() ? "" : ",") + prefix;
    return text.empty() ? "-" : text;
  }

  std::string remark() const {
    if (!problem.empty()) return problem;
    if (!marked) return "no mark with a step: not resumed from; load it by its path";
    std::vector<std::string> words;
    if (abandoned) words.push_back("abandoned: the run went back behind it");
    if (is_temporary) words.push_back("temporary");
    if (pinned) words.push_back("pinned");
    return fmt::format("{}", fmt::join(words, ", "));
  }
};

void add_contents(const Checkpoint& checkpoint, Line& line) {
  line.kind = checkpoint.kind;
  for (const OpenedPrefix& prefix : checkpoint.prefixes) {
    line.prefixes.push_back(prefix.name);
    line.leaves += prefix.manifest.arrays.size() + prefix.values.size();
    if (!line.step) line.step = prefix.manifest.step;
    if (line.time.empty()) line.time = prefix.manifest.time;
    for (const ManifestArray& array : prefix.manifest.arrays) {
      line.bytes += Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
    }
  }
}

Line describe(const RunEntry& entry, Runtime& runtime) {
  Line line;
  line.name = entry.name;
  line.path = entry.path;
  line.step = entry.step;
  line.time = entry.timestamp;
  line.is_temporary = entry.is_temporary;
  line.marked = entry.marked;
  line.pinned = entry.pinned;
  line.abandoned = entry.abandoned;
  if (entry.lineage) line.number = entry.lineage->number;
  line.problem = entry.problem;
  const auto opened = open_checkpoint(entry.path, runtime);
  if (opened) add_contents(*opened, line);
  const Result<void> whole = opened ? check_files(*opened, runtime) : opened.error();
  if (!whole && line.problem.empty()) line.problem = whole.error().message();
  return line;
}

Json to_json(const Line& line) {
  return Json::Object{{"name", line.name},
                      {"path", line.path},
                      {"step", or_null(line.step)},
                      {"time", line.time},
                      {"kind", line.kind},
                      {"prefixes", Json::Array(line.prefixes.begin(), line.prefixes.end())},
                      {"leaves", line.leaves},
                      {"bytes", line.bytes},
                      {"is_temporary", line.is_temporary},
                      {"marked", line.marked},
                      {"pinned", line.pinned},
                      {"abandoned", line.abandoned},
                      {"number", or_null(line.number)},
                      {"problem", text_or_null(line.problem)}};
}

}  // namespace

int ls_command(const LsArgs& args, const Terminal& terminal, Runtime& runtime) {
  std::vector<Line> lines;
  const auto entries = list_run(args.path, runtime);
  if (entries) {
    for (const RunEntry& entry : *entries) lines.push_back(describe(entry, runtime));
  }
  if (lines.empty()) {
    // No run: one checkpoint of another system, one file, or nothing.
    const auto opened = open_checkpoint(args.path, runtime);
    if (!opened) return terminal.fail(opened.error());
    Line line;
    line.name = line.path = args.path;
    line.marked = true;
    add_contents(*opened, line);
    lines.push_back(std::move(line));
  }
  if (terminal.json()) {
    Json::Array list;
    for (const Line& line : lines) list.push_back(to_json(line));
    terminal.document(Json::Object{{"path", args.path}, {"checkpoints", std::move(list)}});
    return kGood;
  }
  std::vector<std::vector<std::string>> rows{
      {"STEP", "NAME", "SAVED", "KIND", "PREFIXES", "LEAVES", "BYTES", ""}};
  for (const Line& line : lines) {
    rows.push_back({line.step ? fmt::format("{}", *line.step) : "-", line.name, cut(line.time, 19),
                    line.kind, line.prefix_text(), fmt::format("{}", line.leaves),
                    format_bytes(line.bytes), line.remark()});
  }
  terminal.lines(table(std::move(rows), {0, 5, 6}));
  return kGood;
}

}  // namespace cairn::cli
