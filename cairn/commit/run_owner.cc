// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/run_owner.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

Error bad_file(const std::string& what) {
  return Error(Code::kCorrupt, "owner/bad-file",
               fmt::format("{}: {}; if no job saves there, remove the file", kOwnerName, what));
}

std::string describe(const OwnerFile& owner) {
  return fmt::format("process {} on {}, since {}", owner.process, owner.host, owner.time);
}

}  // namespace

std::string dump_owner_file(const OwnerFile& owner) {
  return dump_json(Json::Object{{"run_id", owner.run_id},
                                {"epoch", owner.epoch},
                                {"host", owner.host},
                                {"process", owner.process},
                                {"boot_id", owner.boot_id},
                                {"time", owner.time}},
                   JsonStyle{.indent = 1}) +
         "\n";
}

Result<OwnerFile> parse_owner_file(std::string_view text) {
  const auto json = parse_json(text, JsonLimits{.bytes = kMaxOwnerBytes});
  if (!json || json->object() == nullptr) return bad_file("no JSON object");
  OwnerFile owner;
  const std::pair<const char*, std::string*> texts[] = {{"run_id", &owner.run_id},
                                                        {"host", &owner.host},
                                                        {"boot_id", &owner.boot_id},
                                                        {"time", &owner.time}};
  for (const auto& [name, value] : texts) {
    const Json* member = json->find(name);
    if (member == nullptr || member->text() == nullptr)
      return bad_file(fmt::format("'{}' is no text", name));
    *value = *member->text();
  }
  const Json* epoch = json->find("epoch");
  const Json* process = json->find("process");
  if (epoch == nullptr || !epoch->unsigned_integer() || process == nullptr || !process->integer())
    return bad_file("'epoch' or 'process' is no number");
  owner.epoch = *epoch->unsigned_integer();
  owner.process = *process->integer();
  return owner;
}

Result<OwnerFile> next_owner(const std::string& run, const std::optional<SeenOwner>& before,
                             const OwnershipOptions& options, Clock& clock) {
  if (before && before->alive && !options.take_over) {
    return Error(Code::kFailedPrecondition, "run/owned",
                 fmt::format("{} belongs to another job ({}); end that one, or take the run over",
                             run, describe(before->file)));
  }
  const ProcessName self = this_process();
  return OwnerFile{.run_id = options.run_id.empty() ? new_run_id() : options.run_id,
                   .epoch = before ? before->file.epoch + 1 : 1,
                   .host = self.host,
                   .process = self.process,
                   .boot_id = self.boot_id,
                   .time = format_timestamp(clock.wall())};
}

Result<void> check_owner(const std::string& run, const OwnerFile& mine,
                         const std::optional<OwnerFile>& now) {
  if (!now) {
    return Error(Code::kFailedPrecondition, "run/owner-gone",
                 fmt::format("{}/{} was removed; nothing is saved there any more by this job", run,
                             kOwnerName));
  }
  if (*now == mine) return {};
  return Error(Code::kFailedPrecondition, "run/taken-over",
               fmt::format("{} was taken over by {}; this job saves nothing there any more", run,
                           describe(*now)));
}

CommitGuard RunOwner::guard() {
  return [self = shared_from_this()] { return self->hold(); };
}

std::string new_run_id() { return new_id(); }

}  // namespace cairn
