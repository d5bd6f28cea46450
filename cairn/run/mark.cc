// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/mark.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/open.h"
#include "cairn/manifest/names.h"
#include "cairn/run/join_members.h"

namespace cairn {

namespace {

constexpr std::size_t kMaxPinBytes = 64 * kKiB;
constexpr const char* kLineageMember = "cairn";

/// Python writes NaN and Infinity, which JSON does not have; a loss that became NaN must not hide a
/// checkpoint.
std::string with_null_for_nan(std::string_view text) {
  std::string plain;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (rest[0] == '"') quoted = !quoted;
    if (quoted && rest[0] == '\\' && rest.size() > 1) plain += text[at++];
    std::size_t length = 0;
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!quoted && rest.starts_with(word)) length = word.size();
    }
    if (length == 0) {
      plain += text[at];
    } else {
      plain += "null";
      at += length - 1;
    }
  }
  return plain;
}

Result<Json> parse_object(std::string_view text) {
  auto json = parse_json(text);
  if (!json) json = parse_json(with_null_for_nan(text));
  if (json && json->object() != nullptr) return json;
  return Error(Code::kCorrupt, "mark/bad-json", "metadata.json is no JSON object");
}

bool is_known(std::string_view name) {
  return name == "step" || name == "timestamp" || name == "is_temporary" || name == kLineageMember;
}

Error no_mark(const Destination& place) {
  return Error(Code::kNotFound, "mark/none",
               fmt::format("{} has no metadata.json: it is no checkpoint of a run, and neither "
                           "temporary nor permanent",
                           place.path()));
}

Result<void> check_idle(const Destination& place, const Snapshot& snapshot) {
  for (const AttemptView& attempt : snapshot.attempts) {
    if (attempt.state != AttemptState::kAlive) continue;
    return Error(Code::kFailedPrecondition, "mark/busy",
                 fmt::format("process {} on {} saves into {}; try again when it is done",
                             attempt.process, attempt.host, place.path()));
  }
  return {};
}

/// The mark that stands there and may be replaced: every save in the checkpoint has ended, so that
/// none of them, dying later, makes it look torn by a mark that it did not know.
Result<std::string> settled_mark(const Destination& place, const Snapshot& now) {
  if (now.torn) {
    return Error(
        Code::kFailedPrecondition, "mark/torn",
        fmt::format("a save into {} did not finish; nobody knows what is missing", place.path()));
  }
  CAIRN_TRY(check_idle(place, now));
  if (!now.mark) return no_mark(place);
  return *now.mark;
}

Result<bool> is_there(Destination& place, std::string_view name) {
  const auto info = place.stat(std::string(name));
  if (info) return true;
  if (info.error().code() == Code::kNotFound) return false;
  return info.error();
}

Result<bool> is_checkpoint(Destination& place) {
  CAIRN_TRY_ASSIGN(const Snapshot snapshot, place.snapshot());
  if (snapshot.record || snapshot.mark) return true;
  return is_there(place, kIndexName);
}

using Text = std::optional<std::string>;

}  // namespace

Result<Mark> parse_mark(std::string_view text) {
  CAIRN_TRY_ASSIGN(const Json json, parse_object(text));
  Mark mark;
  if (const Json* step = json.find("step")) mark.step = step->integral();
  const Json* timestamp = json.find("timestamp");
  if (timestamp != nullptr && timestamp->text() != nullptr) mark.timestamp = *timestamp->text();
  const Json* temporary = json.find("is_temporary");
  mark.is_temporary = temporary != nullptr && temporary->boolean().value_or(false);
  if (const Json* lineage = json.find(kLineageMember)) mark.lineage = parse_lineage(*lineage);
  Json::Object extra;
  for (const auto& [name, value] : *json.object()) {
    if (!is_known(name)) extra.emplace_back(name, value);
  }
  if (!extra.empty()) mark.extra = std::move(extra);
  return mark;
}

Json to_json(const Mark& mark) {
  Json::Object json;
  if (mark.step) json.emplace_back("step", *mark.step);
  if (!mark.timestamp.empty()) json.emplace_back("timestamp", mark.timestamp);
  json.emplace_back("is_temporary", mark.is_temporary);
  if (mark.extra.object() != nullptr) {
    for (const auto& [name, value] : *mark.extra.object()) {
      if (!is_known(name)) json.emplace_back(name, value);
    }
  }
  return json;
}

std::string dump_mark(const Mark& mark) {
  Json json = to_json(mark);
  if (mark.lineage) json.set(kLineageMember, to_json(*mark.lineage));
  return dump_json(json, JsonStyle{.ascii = true, .python_spaces = true});
}

std::string step_directory(std::int64_t step) { return fmt::format("run-{}", step); }

Mark make_mark(std::int64_t step, bool is_temporary, Clock::Wall now) {
  return {.step = step, .timestamp = format_local_timestamp(now), .is_temporary = is_temporary};
}

std::optional<double> metric_of(const Json& extra, std::string_view name) {
  const Json* metrics = extra.find("metrics");
  const Json* metric = metrics != nullptr ? metrics->find(name) : nullptr;
  return metric != nullptr ? metric->number() : std::nullopt;
}

Result<bool> promote(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  CAIRN_TRY_ASSIGN(const Snapshot seen, place->snapshot());
  // Nothing is written, not even a lock, where there is nothing to promote.
  if (!seen.mark) return no_mark(*place);
  bool promoted = false;
  CAIRN_TRY(place->update(
      std::string(kMarkName), [&](const Snapshot& now, const Text& before) -> Result<Text> {
        CAIRN_TRY_ASSIGN(const std::string text, settled_mark(*place, now));
        CAIRN_TRY_ASSIGN(Json json, parse_object(text).in(place->path()));
        const Json* temporary = json.find("is_temporary");
        promoted = temporary != nullptr && temporary->boolean().value_or(false);
        if (!promoted) return before;
        json.set("is_temporary", false);
        return Text(dump_json(json, JsonStyle{.ascii = true, .python_spaces = true}));
      }));
  return promoted;
}

Result<void> write_mark(const std::string& path, const Mark& mark, const CommitGuard& guard,
                        Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto allowed, take_guard(guard));
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  return place->update(std::string(kMarkName),
                       [&](const Snapshot& now, const Text&) -> Result<Text> {
                         CAIRN_TRY(check_idle(*place, now));
                         Mark whole = mark;
                         const auto there = now.mark ? parse_mark(*now.mark) : Mark{};
                         if (there)
                           whole.extra = join_members(std::move(whole.extra), there->extra);
                         return Text(dump_mark(whole));
                       });
}

Result<void> pin(const std::string& path, const std::string& reason, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  CAIRN_TRY_ASSIGN(const bool checkpoint, is_checkpoint(*place));
  if (!checkpoint) {
    return Error(Code::kFailedPrecondition, "pin/not-a-checkpoint",
                 place->path() + " is no checkpoint that could be kept");
  }
  if (reason.size() > kMaxPinBytes) {
    return Error(Code::kInvalidArgument, "pin/reason-too-long",
                 fmt::format("a reason has at most {} bytes", kMaxPinBytes));
  }
  return place->update(std::string(kPinName),
                       [&](const Snapshot&, const Text&) -> Result<Text> { return Text(reason); });
}

Result<bool> unpin(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  CAIRN_TRY(place->version_of(""));  // a path that is not there is an error
  CAIRN_TRY_ASSIGN(const bool pinned, is_there(*place, kPinName));
  if (!pinned) return false;
  CAIRN_TRY(place->update(std::string(kPinName),
                          [](const Snapshot&, const Text&) -> Result<Text> { return Text(); }));
  return true;
}

Result<std::optional<std::string>> find_pin(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  return place->read(std::string(kPinName), kMaxPinBytes);
}

}  // namespace cairn
