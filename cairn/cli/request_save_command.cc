// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/terminal.h"
#include "cairn/commit/open.h"
#include "cairn/run/run_status.h"
#include "cairn/run/save_request.h"

namespace cairn::cli {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{200};

/// By which two saves into one path are told apart.
std::string save_of(const RunEntry& entry, Runtime& runtime) {
  const auto place = open_destination(entry.path, runtime);
  const auto snapshot = place ? (*place)->snapshot() : place.error();
  if (snapshot && snapshot->record && !snapshot->record->committed.empty())
    return snapshot->record->committed.back();
  return entry.path + " " + entry.timestamp;
}

/// Saves that answer no request made now: committed, or on their way with what was there before.
Result<std::set<std::string>> earlier_saves(const std::string& run, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const RunStatus status, RunWatch(run, runtime).look(RunWatch::Bytes::kLeaveOut));
  CAIRN_TRY_ASSIGN(const auto entries, list_run(run, runtime));
  std::set<std::string> saves;
  for (const SaveStatus& save : status.saves) saves.insert(save.attempt.view.id);
  for (const RunEntry& entry : entries) saves.insert(save_of(entry, runtime));
  return saves;
}

Result<std::optional<RunEntry>> find_newer(const std::string& run,
                                           const std::set<std::string>& earlier, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto entries, list_run(run, runtime));
  for (const RunEntry& entry : entries) {
    if (entry.marked && entry.problem.empty() && !earlier.contains(save_of(entry, runtime)))
      return std::optional(entry);
  }
  return std::optional<RunEntry>();
}

Error too_late(const RequestSaveArgs& args, bool taken) {
  const std::string time = format_seconds(args.timeout);
  return Error(
      Code::kDeadlineExceeded, taken ? "request/not-saved" : "request/not-taken",
      taken ? fmt::format("the job took the request, but no newer checkpoint was committed within "
                          "{}; `cairn watch {}` shows what it does",
                          time, args.path)
            : fmt::format("no job took the request within {}; it still waits in {}", time,
                          args.path));
}

Result<RunEntry> wait_for_answer(const RequestSaveArgs& args, const std::set<std::string>& earlier,
                                 Runtime& runtime) {
  const auto timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(args.timeout));
  const Deadline deadline = Deadline::in(timeout, runtime.clock());
  while (true) {
    CAIRN_TRY_ASSIGN(const auto waiting, find_request(args.path, runtime));
    if (!waiting) {
      CAIRN_TRY_ASSIGN(const auto found, find_newer(args.path, earlier, runtime));
      if (found) return *found;
    }
    if (deadline.passed(runtime.clock())) return too_late(args, !waiting);
    runtime.clock().pause(kBetweenLooks);
  }
}

/// No living job has saved into the run so far. One may train all the same: a job takes the run
/// with its first save.
bool is_unowned(const std::string& run, Runtime& runtime) {
  const auto owner = find_owner(run, runtime);
  return owner && (!*owner || !(*owner)->alive);
}

}  // namespace

int request_save_command(const RequestSaveArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto earlier = earlier_saves(args.path, runtime);
  if (!earlier) return terminal.fail(earlier.error());
  if (const auto asked = request_save(args.path, args.reason, runtime); !asked)
    return terminal.fail(asked.error());
  if (is_unowned(args.path, runtime))
    terminal.note(
        "note: no running job has saved here yet, so none can be seen; the request waits for the "
        "next step of any job that trains in this directory");
  Json answer = Json::Object{{"path", args.path}, {"reason", args.reason}};
  if (!args.wait) {
    if (terminal.json())
      terminal.document(answer);
    else
      terminal.line(args.path + ": a save is asked for");
    return kGood;
  }
  const auto saved = wait_for_answer(args, *earlier, runtime);
  if (!saved) return terminal.fail(saved.error());
  if (terminal.json()) {
    answer.set("checkpoint", saved->path);
    answer.set("step", saved->step ? Json(*saved->step) : Json());
    answer.set("time", saved->timestamp);
    terminal.document(answer);
  } else {
    terminal.line(fmt::format("{} is saved{}", saved->path,
                              saved->step ? fmt::format(", step {}", *saved->step) : ""));
  }
  return kGood;
}

}  // namespace cairn::cli
