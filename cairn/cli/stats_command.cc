// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"
#include "cairn/inspect/stats.h"

namespace cairn::cli {

namespace {

std::string text(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

Json to_json(const ArrayStats& stats) {
  return Json::Object{{"key", stats.key},
                      {"prefix", stats.prefix},
                      {"dtype", dtype_name(stats.dtype)},
                      {"shape", Json::Array(stats.shape.begin(), stats.shape.end())},
                      {"elements", stats.elements},
                      {"min", or_null(stats.min)},
                      {"max", or_null(stats.max)},
                      {"mean", or_null(stats.mean)},
                      {"std", or_null(stats.std)},
                      {"nan", stats.nan},
                      {"inf", stats.inf},
                      {"zeros", stats.zeros}};
}

struct Answer {
  std::string path;  ///< that was opened
  std::vector<ArrayStats> leaves;
};

Result<Answer> compute(const StatsArgs& args, const Terminal& terminal, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_argument(args.path, terminal, runtime));
  StatsOptions options{.prefix = args.prefix, .keys = {}, .progress = terminal.progress("stats")};
  if (!args.key.empty()) {
    CAIRN_TRY_ASSIGN(auto key, KeyPath::parse(args.key));
    options.keys.push_back(std::move(key));
  }
  CAIRN_TRY_ASSIGN(auto results, stats(checkpoint, options, runtime));
  if (results.empty() && !args.key.empty()) {
    return Error(Code::kNotFound, "load/key-missing",
                 fmt::format("there is no array '{}' in {}; `cairn show` lists all", args.key,
                             checkpoint.path));
  }
  return Answer{checkpoint.path, std::move(results)};
}

}  // namespace

int stats_command(const StatsArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto answer = compute(args, terminal, runtime);
  if (!answer) return terminal.fail(answer.error());
  if (terminal.json()) {
    Json::Array leaves;
    for (const ArrayStats& stats : answer->leaves) leaves.push_back(to_json(stats));
    terminal.document(Json::Object{{"path", answer->path}, {"leaves", std::move(leaves)}});
    return kGood;
  }
  std::vector<std::vector<std::string>> rows{
      {"LEAF", "DTYPE", "SHAPE", "MIN", "MAX", "MEAN", "STD", "NAN", "INF", "ZEROS"}};
  for (const ArrayStats& s : answer->leaves) {
    rows.push_back({(s.prefix.empty() ? "" : s.prefix + ": ") + s.key,
                    std::string(dtype_name(s.dtype)), to_string(s.shape), text(s.min), text(s.max),
                    text(s.mean), text(s.std), fmt::format("{}", s.nan), fmt::format("{}", s.inf),
                    fmt::format("{}", s.zeros)});
  }
  terminal.lines(table(std::move(rows), {3, 4, 5, 6, 7, 8, 9}));
  return kGood;
}

}  // namespace cairn::cli
