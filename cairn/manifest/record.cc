// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/record.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/base/version.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

constexpr JsonLimits kRecordLimits = {.bytes = kMaxRecordBytes};

Error bad_record(std::string_view name) {
  return Error(Code::kCorrupt, "record/bad-member",
               fmt::format("cairn.json has no valid member '{}'", name));
}

Result<std::string> text_member(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  if (member == nullptr || member->text() == nullptr) return bad_record(name);
  return *member->text();
}

Result<std::uint64_t> count_member(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  const auto value = member != nullptr ? member->unsigned_integer() : std::nullopt;
  if (!value) return bad_record(name);
  return *value;
}

Result<std::vector<std::string>> texts_member(const Json& object, std::string_view name) {
  const Json* member = object.find(name);
  if (member == nullptr || member->array() == nullptr) return bad_record(name);
  std::vector<std::string> texts;
  for (const Json& item : *member->array()) {
    if (item.text() == nullptr) return bad_record(name);
    texts.push_back(*item.text());
  }
  return texts;
}

Result<void> check_names(const RecordPrefix& prefix) {
  auto names = prefix.entries;
  names.push_back(prefix.manifest);
  for (const std::string& name : names) {
    if (!is_safe_relative_path(name)) {
      return Error(
          Code::kCorrupt, "record/unsafe-name",
          fmt::format("cairn.json names '{}', which does not lie inside the checkpoint", name));
    }
  }
  const std::string directory = prefix_directory(prefix.name);
  const bool has_directory =
      !directory.empty() && std::ranges::find(prefix.entries, directory) != prefix.entries.end();
  if (has_directory && !prefix.manifest.starts_with(directory + "/")) return bad_record("manifest");
  return {};
}

Result<RecordPrefix> parse_prefix(const std::string& name, const Json& json) {
  RecordPrefix prefix;
  prefix.name = name;
  CAIRN_TRY_ASSIGN(prefix.manifest, text_member(json, "manifest"));
  CAIRN_TRY_ASSIGN(prefix.manifest_bytes, count_member(json, "bytes"));
  CAIRN_TRY_ASSIGN(prefix.manifest_sha256, text_member(json, "sha256"));
  CAIRN_TRY_ASSIGN(prefix.attempt, text_member(json, "attempt"));
  CAIRN_TRY_ASSIGN(prefix.entries, texts_member(json, "entries"));
  CAIRN_TRY(check_names(prefix));
  return prefix;
}

Json texts_to_json(const std::vector<std::string>& texts) {
  return Json(Json::Array(texts.begin(), texts.end()));
}

}  // namespace

const RecordPrefix* Record::find(std::string_view name) const {
  for (const RecordPrefix& prefix : prefixes) {
    if (prefix.name == name) return &prefix;
  }
  return nullptr;
}

Result<Record> parse_record(std::string_view text) {
  auto parsed = parse_json(text, kRecordLimits);
  if (!parsed || parsed->object() == nullptr) {
    return Error(Code::kCorrupt, "record/bad-json",
                 parsed ? "cairn.json is not a JSON object" : parsed.error().to_string());
  }
  CAIRN_TRY_ASSIGN(const std::uint64_t format, count_member(*parsed, "format"));
  if (format > static_cast<std::uint64_t>(kFormatVersion)) {
    return Error(
        Code::kUnimplemented, "record/newer-format",
        fmt::format("this checkpoint has format {}; this Cairn reads up to format {}: use a "
                    "newer Cairn",
                    format, kFormatVersion));
  }
  Record record;
  record.format = static_cast<int>(format);
  CAIRN_TRY_ASSIGN(record.writer, text_member(*parsed, "writer"));
  CAIRN_TRY_ASSIGN(record.run_id, text_member(*parsed, "run_id"));
  CAIRN_TRY_ASSIGN(record.generation, count_member(*parsed, "generation"));
  if (record.generation > kMaxGeneration) return bad_record("generation");
  CAIRN_TRY_ASSIGN(record.committed, texts_member(*parsed, "committed"));
  if (const Json* step = parsed->find("step"); step != nullptr && !step->is_null()) {
    record.step = step->integer();
    if (!record.step) return bad_record("step");
  }
  const Json* prefixes = parsed->find("prefixes");
  if (prefixes == nullptr || prefixes->object() == nullptr) return bad_record("prefixes");
  for (const auto& [name, json] : *prefixes->object()) {
    CAIRN_TRY_ASSIGN(auto prefix, parse_prefix(name, json));
    record.prefixes.push_back(std::move(prefix));
  }
  return record;
}

Result<std::string> dump_record(const Record& record) {
  Json::Object prefixes;
  for (const RecordPrefix& prefix : record.prefixes) {
    prefixes.emplace_back(prefix.name,
                          Json(Json::Object{{"manifest", prefix.manifest},
                                            {"bytes", prefix.manifest_bytes},
                                            {"sha256", prefix.manifest_sha256},
                                            {"attempt", prefix.attempt},
                                            {"entries", texts_to_json(prefix.entries)}}));
  }
  const Json json(Json::Object{{"format", record.format},
                               {"writer", record.writer},
                               {"run_id", record.run_id},
                               {"step", record.step ? Json(*record.step) : Json()},
                               {"generation", record.generation},
                               {"prefixes", std::move(prefixes)},
                               {"committed", texts_to_json(record.committed)}});
  auto text = dump_json_file(json, kRecordLimits, {.indent = 2});
  if (text) return text;
  return Error(Code::kInvalidArgument, "record/too-many-names",
               fmt::format("the tree has too many names at its top for cairn.json ({}); save it "
                           "with a prefix, which makes them one directory",
                           text.error().message()));
}

std::string writer_name() { return fmt::format("cairn {}", kVersion); }

}  // namespace cairn
