// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"
#include "cairn/inspect/diff.h"

namespace cairn::cli {

namespace {

Json to_json(const LeafDifference& difference) {
  return Json::Object{{"kind", difference_name(difference.kind)},
                      {"prefix", difference.prefix},
                      {"key", difference.key},
                      {"first", difference.first},
                      {"second", difference.second},
                      {"elements", difference.elements},
                      {"different", difference.different},
                      {"max_absolute", or_null(difference.max_absolute)},
                      {"max_relative", or_null(difference.max_relative)}};
}

std::string sides(const LeafDifference& d) {
  if (d.first.empty()) return d.second;
  if (d.second.empty() || d.first == d.second) return d.first;
  return fmt::format("{} | {}", d.first, d.second);
}

std::vector<std::string> row(const LeafDifference& d) {
  std::string numbers;
  if (d.different != 0) {
    numbers = fmt::format("{} of {} elements differ", d.different, d.elements);
    if (d.max_absolute) {
      numbers += fmt::format(", at most by {:.6g} absolute, {:.6g} relative", *d.max_absolute,
                             *d.max_relative);
    }
  } else if (d.kind == DifferenceKind::kDType && d.elements != 0) {
    numbers = "equal numbers";
  }
  return {std::string(difference_name(d.kind)), (d.prefix.empty() ? "" : d.prefix + ": ") + d.key,
          sides(d), numbers};
}

struct Answer {
  std::string first;  ///< paths that were compared
  std::string second;
  DiffReport report;
};

Result<Answer> compute(const DiffArgs& args, const Terminal& terminal, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint first, open_argument(args.first, terminal, runtime));
  CAIRN_TRY_ASSIGN(const Checkpoint second, open_argument(args.second, terminal, runtime));
  CAIRN_TRY_ASSIGN(
      auto report,
      diff(first, second, {.prefix = args.prefix, .progress = terminal.progress("diff")}, runtime));
  return Answer{first.path, second.path, std::move(report)};
}

}  // namespace

int diff_command(const DiffArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto answer = compute(args, terminal, runtime);
  if (!answer) return terminal.fail(answer.error());
  const DiffReport* report = &answer->report;
  if (terminal.json()) {
    Json::Array differences;
    for (const LeafDifference& difference : report->differences)
      differences.push_back(to_json(difference));
    terminal.document(Json::Object{{"first", answer->first},
                                   {"second", answer->second},
                                   {"same", report->same()},
                                   {"equal", report->equal},
                                   {"compared", report->compared},
                                   {"differences", std::move(differences)}});
    return report->same() ? kGood : kFound;
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(report->differences.size());
  for (const LeafDifference& difference : report->differences) rows.push_back(row(difference));
  terminal.lines(table(std::move(rows), {}));
  if (report->same()) {
    terminal.line({{"equal", Style::kGreen},
                   {fmt::format("  {} leaves, {} compared bit for bit", report->equal,
                                format_bytes(report->bytes))}});
  } else {
    terminal.line({{"different", Style::kRed},
                   {fmt::format("  {}; {} of {} common leaves are equal",
                                counted(report->differences.size(), "difference"), report->equal,
                                report->compared)}});
  }
  return report->same() ? kGood : kFound;
}

}  // namespace cairn::cli
