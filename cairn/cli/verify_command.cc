// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"
#include "cairn/inspect/verify.h"

namespace cairn::cli {

namespace {

Json to_json(const Damage& damage) {
  return Json::Object{{"prefix", damage.prefix}, {"key", damage.key},
                      {"object", damage.object}, {"chunk", damage.chunk},
                      {"reason", damage.reason}, {"message", damage.message}};
}

void print(const VerifyReport& report, const Terminal& terminal) {
  for (const Damage& damage : report.damages) {
    const std::string chunk = damage.chunk.empty() ? "" : ", chunk " + damage.chunk;
    terminal.line({{"DAMAGED", Style::kRed},
                   {"  " + (damage.key.empty() ? damage.object : "leaf " + damage.key + chunk)},
                   {damage.prefix.empty() ? "" : " of prefix " + damage.prefix}});
    terminal.line(
        fmt::format("         {}: {} [{}]", damage.object, damage.message, damage.reason));
  }
  if (!report.unchecked.empty()) {
    terminal.line(fmt::format(
        "{} of {} arrays have no checksums (written by another system): all that can be said "
        "is that they decode",
        report.unchecked.size(), report.arrays));
  }
  const std::string what = fmt::format("{}, {}, {}", counted(report.arrays, "array"),
                                       counted(report.chunks, "chunk"), format_bytes(report.bytes));
  if (report.damages.empty()) {
    terminal.line({{"good", Style::kGreen}, {"  " + what}});
  } else {
    terminal.line({{"damaged", Style::kRed},
                   {fmt::format("  {} in {}", counted(report.damages.size(), "place"), what)}});
  }
}

}  // namespace

int verify_command(const VerifyArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto checkpoint = open_argument(args.path, terminal, runtime);
  if (!checkpoint) return terminal.fail(checkpoint.error());
  const auto report = verify(
      *checkpoint, {.prefix = args.prefix, .progress = terminal.progress("verify")}, runtime);
  if (!report) return terminal.fail(report.error());
  if (terminal.json()) {
    Json::Array damages;
    for (const Damage& damage : report->damages) damages.push_back(to_json(damage));
    terminal.document(Json::Object{
        {"path", checkpoint->path},
        {"good", report->damages.empty()},
        {"arrays", report->arrays},
        {"chunks", report->chunks},
        {"bytes", report->bytes},
        {"damages", std::move(damages)},
        {"unchecked", Json::Array(report->unchecked.begin(), report->unchecked.end())}});
  } else {
    print(*report, terminal);
  }
  return report->damages.empty() ? kGood : kFound;
}

}  // namespace cairn::cli
