// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/base/uri.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/storage/local/probe.h"

namespace cairn::cli {

int doctor_command(const DoctorArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto place = LocalPath::parse(args.path);
  if (!place) return terminal.fail(place.error());
  const auto report = storage::probe_file_system(runtime.file_system(), *place);
  if (!report) return terminal.fail(report.error());
  if (terminal.json()) {
    Json::Array findings;
    for (const storage::Finding& finding : report->findings) {
      findings.emplace_back(Json::Object{{"name", finding.name},
                                         {"good", finding.good},
                                         {"value", finding.value},
                                         {"meaning", finding.meaning}});
    }
    terminal.document(Json::Object{{"path", args.path},
                                   {"type", report->space.type},
                                   {"total_bytes", report->space.total},
                                   {"available_bytes", report->space.available},
                                   {"findings", std::move(findings)}});
    return kGood;
  }
  terminal.line(
      {{args.path, Style::kBold},
       {fmt::format("  {}, {} free of {}", report->space.type,
                    format_bytes(report->space.available), format_bytes(report->space.total))}});
  std::vector<std::vector<std::string>> rows;
  for (const storage::Finding& finding : report->findings) {
    rows.push_back({finding.good ? "  ok" : "  --", finding.name, finding.value, finding.meaning});
  }
  terminal.lines(table(std::move(rows), {}));
  return kGood;
}

}  // namespace cairn::cli
