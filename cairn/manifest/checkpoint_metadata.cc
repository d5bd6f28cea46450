// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/checkpoint_metadata.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/clock.h"
#include "cairn/manifest/record.h"

namespace cairn {

namespace {

constexpr JsonLimits kMetadataLimits = {.bytes = kMaxCheckpointMetadataBytes,
                                        .values = std::size_t{1} << 25};

Error bad_metadata(std::string_view name, const Json& value) {
  return Error(Code::kCorrupt, "metadata/bad-member",
               fmt::format("'{}' of a checkpoint's metadata is a {}", name, value.kind_name()));
}

Result<void> read_text(const std::string& name, const Json& value, std::string& into) {
  if (value.is_null()) return {};
  if (value.text() == nullptr) return bad_metadata(name, value);
  into = *value.text();
  return {};
}

Result<void> read_object(const std::string& name, const Json& value, Json::Object& into) {
  if (value.is_null()) return {};
  if (value.object() == nullptr) return bad_metadata(name, value);
  into = *value.object();
  return {};
}

Result<void> read_member(const std::string& name, const Json& value, CheckpointMetadata& into) {
  if (name == "version") return read_text(name, value, into.version);
  if (name == "timestamp") return read_text(name, value, into.timestamp);
  if (name == "checksum") return read_object(name, value, into.checksum);
  if (name == "array_metadata") return read_object(name, value, into.array_metadata);
  if (name == "framework_version") {
    if (value.is_null()) return {};
    return read_text(name, value, into.framework_version.emplace());
  }
  if (name == "custom_metadata") {
    if (!value.is_null() && value.object() == nullptr) return bad_metadata(name, value);
    into.custom_metadata = value;
    return {};
  }
  into.others.emplace_back(name, value);
  return {};
}

Json object_or_empty(const Json& value) { return value.is_null() ? Json(Json::Object{}) : value; }

}  // namespace

Json CheckpointMetadata::to_dict() const {
  Json::Object members{
      {"version", version.empty() ? writer_name() : version},
      {"timestamp", timestamp.empty() ? format_local_timestamp(system_clock().wall()) : timestamp},
      {"checksum", checksum},
      {"array_metadata", array_metadata},
      {"framework_version", framework_version ? Json(*framework_version) : Json()},
      {"custom_metadata", object_or_empty(custom_metadata)}};
  members.insert(members.end(), others.begin(), others.end());
  return Json(std::move(members));
}

Result<CheckpointMetadata> CheckpointMetadata::from_dict(const Json& json) {
  if (json.object() == nullptr) {
    return Error(Code::kCorrupt, "metadata/not-an-object",
                 fmt::format("a checkpoint's metadata is a {}, not an object", json.kind_name()));
  }
  CheckpointMetadata metadata;
  for (const auto& [name, value] : *json.object()) CAIRN_TRY(read_member(name, value, metadata));
  return metadata;
}

CheckpointMetadata describe_checkpoint(const Manifest& manifest, bool with_arrays) {
  const auto time = parse_timestamp(manifest.time);
  CheckpointMetadata metadata{.timestamp = time ? format_local_timestamp(*time) : manifest.time,
                              .custom_metadata = manifest.metadata};
  if (!with_arrays) return metadata;
  for (const ManifestArray& array : manifest.arrays) {
    const format::StoredArray& stored = array.stored;
    if (!array.sha256.empty()) metadata.checksum.emplace_back(array.path.text(), array.sha256);
    metadata.array_metadata.emplace_back(
        array.path.text(),
        Json::Object{{"dtype", dtype_name(stored.dtype)},
                     {"shape", Json::Array(stored.shape.begin(), stored.shape.end())}});
  }
  return metadata;
}

std::string dump_checkpoint_metadata(const CheckpointMetadata& metadata) {
  return dump_json(metadata.to_dict(), JsonStyle{.ascii = true, .python_spaces = true});
}

Result<CheckpointMetadata> parse_checkpoint_metadata(std::string_view text) {
  CAIRN_TRY_ASSIGN(const Json json, parse_json(text, kMetadataLimits));
  return CheckpointMetadata::from_dict(json);
}

}  // namespace cairn
