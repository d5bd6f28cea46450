// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/run/mark.h"

namespace cairn::cli {

int promote_command(const PromoteArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto promoted = promote(args.path, runtime);
  if (!promoted) return terminal.fail(promoted.error());
  if (terminal.json()) {
    terminal.document(Json::Object{{"path", args.path}, {"promoted", *promoted}});
  } else {
    terminal.line(args.path + (*promoted ? " is permanent now" : " was permanent already"));
  }
  return kGood;
}

}  // namespace cairn::cli
