// SPDX-License-Identifier: Apache-2.0
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/run/mark.h"

namespace cairn::cli {

int pin_command(const PinArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto pinned = pin(args.path, args.reason, runtime);
  if (!pinned) return terminal.fail(pinned.error());
  if (terminal.json()) {
    terminal.document(Json::Object{{"path", args.path}, {"pinned", true}, {"reason", args.reason}});
  } else {
    terminal.line(args.path + " is pinned: nothing removes it");
  }
  return kGood;
}

int unpin_command(const UnpinArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto unpinned = unpin(args.path, runtime);
  if (!unpinned) return terminal.fail(unpinned.error());
  if (terminal.json()) {
    terminal.document(Json::Object{{"path", args.path}, {"pinned", false}});
  } else {
    terminal.line(args.path + (*unpinned ? " is not pinned any more" : " was not pinned"));
  }
  return kGood;
}

}  // namespace cairn::cli
