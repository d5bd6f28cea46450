// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/attempt_files.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/coord/told_error.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

Error bad_attempt() { return Error(Code::kCorrupt, "attempt/bad-file", "attempt.json is damaged"); }
Error bad_outcome() { return Error(Code::kCorrupt, "outcome/bad-file", "outcome.json is damaged"); }

constexpr JsonLimits kAttemptFileLimits = {.bytes = kMaxAttemptFileBytes,
                                           .values = std::size_t{1} << 22};

Result<std::string> dump_limited(const Json& json, const char* reason, std::string_view file) {
  auto text = dump_json_file(json, kAttemptFileLimits, {.indent = 2});
  if (text) return text;
  return Error(Code::kInvalidArgument, reason,
               fmt::format("{} would have too many names ({}); save fewer prefixes at once, or the "
                           "tree with a prefix",
                           file, text.error().message()));
}

Json optional_text(const std::optional<std::string>& text) { return text ? Json(*text) : Json(); }

std::optional<std::string> text_or_nothing(const Json* json) {
  if (json == nullptr || json->text() == nullptr) return std::nullopt;
  return *json->text();
}

Json names_to_json(const std::vector<std::string>& names) {
  return Json::Array(names.begin(), names.end());
}

Result<std::vector<std::string>> names_from_json(const Json* json, bool paths) {
  if (json == nullptr || json->array() == nullptr) return bad_outcome();
  std::vector<std::string> names;
  for (const Json& item : *json->array()) {
    if (item.text() == nullptr || (paths && !is_safe_relative_path(*item.text())))
      return bad_outcome();
    names.push_back(*item.text());
  }
  return names;
}

Json file_to_json(const ReplacedFile& file) {
  return Json::Object{
      {"name", file.name}, {"from", optional_text(file.from)}, {"to", optional_text(file.to)}};
}

Result<ReplacedFile> file_from_json(const Json& json,
                                    std::initializer_list<std::string_view> known) {
  const auto name = text_or_nothing(json.find("name"));
  if (!name || std::ranges::find(known, std::string_view(*name)) == known.end())
    return bad_outcome();
  return ReplacedFile{*name, text_or_nothing(json.find("from")), text_or_nothing(json.find("to"))};
}

}  // namespace

Result<std::string> dump_attempt_file(const AttemptFile& attempt) {
  Json::Array prefixes;
  for (const auto& [name, before] : attempt.prefixes)
    prefixes.emplace_back(Json::Array{name, before});
  const Json json(Json::Object{{"attempt", attempt.id},
                               {"host", attempt.writer.host},
                               {"process", attempt.writer.process},
                               {"boot_id", attempt.writer.boot_id},
                               {"started", attempt.started},
                               {"ranks", attempt.ranks},
                               {"run_id", attempt.run_id},
                               {"generation", attempt.generation},
                               {"mark_sha256", optional_text(attempt.mark_sha256)},
                               {"prefixes", std::move(prefixes)}});
  return dump_limited(json, "attempt/too-large", kAttemptFile);
}

Result<AttemptFile> parse_attempt_file(std::string_view text) {
  const auto json = parse_json(text, kAttemptFileLimits);
  if (!json || json->object() == nullptr) return bad_attempt();
  AttemptFile attempt;
  const std::pair<const char*, std::string*> texts[] = {{"attempt", &attempt.id},
                                                        {"host", &attempt.writer.host},
                                                        {"boot_id", &attempt.writer.boot_id},
                                                        {"started", &attempt.started},
                                                        {"run_id", &attempt.run_id}};
  for (const auto& [name, target] : texts) {
    const auto value = text_or_nothing(json->find(name));
    if (!value) return bad_attempt();
    *target = *value;
  }
  const Json* process = json->find("process");
  const Json* ranks = json->find("ranks");
  const Json* generation = json->find("generation");
  const Json* prefixes = json->find("prefixes");
  if (process == nullptr || !process->integer() || ranks == nullptr || !ranks->integer() ||
      generation == nullptr || !generation->unsigned_integer() || prefixes == nullptr ||
      prefixes->array() == nullptr) {
    return bad_attempt();
  }
  attempt.writer.process = *process->integer();
  attempt.ranks = static_cast<int>(*ranks->integer());
  attempt.generation = *generation->unsigned_integer();
  attempt.mark_sha256 = text_or_nothing(json->find("mark_sha256"));
  for (const Json& pair : *prefixes->array()) {
    if (pair.array() == nullptr || pair.array()->size() != 2 ||
        (*pair.array())[0].text() == nullptr || (*pair.array())[1].text() == nullptr) {
      return bad_attempt();
    }
    attempt.prefixes.emplace_back(*(*pair.array())[0].text(), *(*pair.array())[1].text());
  }
  return attempt;
}

Result<std::string> dump_outcome(const Outcome& outcome) {
  Json::Array files;
  for (const ReplacedFile& file : outcome.files) files.push_back(file_to_json(file));
  const Json json(
      Json::Object{{"outcome", outcome.commit ? "commit" : "abandon"},
                   {"prefixes", names_to_json(outcome.prefixes)},
                   {"out", names_to_json(outcome.out)},
                   {"in", names_to_json(outcome.in)},
                   {"files", std::move(files)},
                   {"mark", outcome.mark ? file_to_json(*outcome.mark) : Json()},
                   {"failure", outcome.failure ? error_to_json(*outcome.failure) : Json()}});
  return dump_limited(json, "outcome/too-large", kOutcomeFile);
}

Result<Outcome> parse_outcome(std::string_view text) {
  const auto json = parse_json(text, kAttemptFileLimits);
  if (!json || json->object() == nullptr) return bad_outcome();
  const auto decided = text_or_nothing(json->find("outcome"));
  if (decided != "commit" && decided != "abandon") return bad_outcome();
  Outcome outcome;
  outcome.commit = decided == "commit";
  if (!outcome.commit) {
    const Json* failure = json->find("failure");
    if (failure != nullptr) outcome.failure = error_from_json(*failure);
    return outcome;
  }
  CAIRN_TRY_ASSIGN(outcome.prefixes, names_from_json(json->find("prefixes"), false));
  CAIRN_TRY_ASSIGN(outcome.out, names_from_json(json->find("out"), true));
  CAIRN_TRY_ASSIGN(outcome.in, names_from_json(json->find("in"), true));
  const Json* files = json->find("files");
  if (files == nullptr || files->array() == nullptr) return bad_outcome();
  for (const Json& item : *files->array()) {
    CAIRN_TRY_ASSIGN(auto file, file_from_json(item, {kIndexName, kCheckpointMetadataName}));
    outcome.files.push_back(std::move(file));
  }
  if (const Json* mark = json->find("mark"); mark != nullptr && !mark->is_null()) {
    CAIRN_TRY_ASSIGN(outcome.mark, file_from_json(*mark, {kMarkName}));
  }
  return outcome;
}

}  // namespace cairn
