// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/manifest_json.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/manifest/manifest_columns.h"
#include "cairn/manifest/names.h"
#include "cairn/manifest/record.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

constexpr JsonLimits kLimits = {
    .bytes = kMaxManifestBytes, .depth = kMaxStructureJsonDepth + 16, .values = kMaxManifestValues};

}  // namespace

std::string root_digest(const Manifest& manifest) {
  Sha256 sha;
  sha.update(as_bytes(dump_json(manifest.structure)));
  for (const ManifestArray& array : manifest.arrays) {
    sha.update(as_bytes(
        fmt::format("\n{}{}", dtype_name(array.stored.dtype), to_string(array.stored.shape))));
    sha.update(std::as_bytes(std::span(array.sums.lengths())));
    sha.update(std::as_bytes(std::span(array.sums.crcs())));
  }
  return sha.hex();
}

namespace {

/// `[["fsdp", 4], ["tp", 2]]`, or null.
Json mesh_to_json(const std::vector<MeshAxis>& axes) {
  if (axes.empty()) return {};
  Json::Array list;
  for (const MeshAxis& axis : axes) list.emplace_back(Json::Array{axis.name, axis.size});
  return list;
}

}  // namespace

Result<std::string> dump_manifest(const Manifest& manifest) {
  for (const ManifestArray& array : manifest.arrays) {
    const auto fits = array.stored.check_sizes();
    if (!fits) return Error(Code::kInvalidArgument, "manifest/too-large", fits.error().message());
  }
  Json json(Json::Object{{"format", manifest.format},
                         {"layout", manifest.layout},
                         {"prefix", manifest.prefix},
                         {"step", manifest.step ? Json(*manifest.step) : Json()},
                         {"attempt", manifest.attempt},
                         {"run_id", manifest.run_id},
                         {"time", manifest.time},
                         {"writer", manifest.writer},
                         {"ranks", manifest.ranks},
                         {"mesh", mesh_to_json(manifest.mesh)},
                         {"metadata", manifest.metadata},
                         {"extras", manifest.extras},
                         {"structure", manifest.structure}});
  if (!manifest.structure_file.empty()) json.set("structure_file", manifest.structure_file);
  columns_to_json(manifest, json);
  json.set("digest", root_digest(manifest));
  return dump_json_file(json, kLimits).in([&] {
    return fmt::format("the manifest of {} arrays", manifest.arrays.size());
  });
}

namespace {

Result<std::vector<MeshAxis>> mesh_from_json(const Json* json) {
  std::vector<MeshAxis> axes;
  if (json == nullptr || json->is_null()) return axes;
  if (json->array() == nullptr || json->array()->size() > Mesh::kMaxAxes)
    return manifest_member_error("mesh");
  for (const Json& item : *json->array()) {
    const Json::Array* pair = item.array();
    if (pair == nullptr || pair->size() != 2 || (*pair)[0].text() == nullptr ||
        (*pair)[1].integer().value_or(0) < 1) {
      return manifest_member_error("mesh");
    }
    axes.push_back({*(*pair)[0].text(), *(*pair)[1].integer()});
  }
  return axes;
}

Result<void> parse_head(const Json& json, Manifest& manifest) {
  const Json* format = json.find("format");
  const auto version = format != nullptr ? format->unsigned_integer() : std::nullopt;
  if (!version) return manifest_member_error("format");
  if (*version > static_cast<std::uint64_t>(kFormatVersion)) {
    return Error(Code::kUnimplemented, "manifest/newer-format",
                 fmt::format("this manifest has format {}; this Cairn reads up to format {}: use a "
                             "newer Cairn",
                             *version, kFormatVersion));
  }
  manifest.format = static_cast<int>(*version);
  const std::pair<const char*, std::string*> texts[] = {
      {"layout", &manifest.layout}, {"prefix", &manifest.prefix}, {"attempt", &manifest.attempt},
      {"run_id", &manifest.run_id}, {"time", &manifest.time},     {"writer", &manifest.writer},
      {"digest", &manifest.digest},
  };
  for (const auto& [name, target] : texts) {
    const Json* member = json.find(name);
    if (member == nullptr || member->text() == nullptr) return manifest_member_error(name);
    *target = *member->text();
  }
  if (manifest.layout != kZarr2Layout && manifest.layout != kSafetensorsLayout) {
    return manifest_member_error("layout");
  }
  if (const Json* step = json.find("step"); step != nullptr) manifest.step = step->integer();
  const Json* ranks = json.find("ranks");
  manifest.ranks = static_cast<int>(ranks != nullptr ? ranks->integer().value_or(1) : 1);
  CAIRN_TRY_ASSIGN(manifest.mesh, mesh_from_json(json.find("mesh")));
  if (const Json* file = json.find("structure_file"); file != nullptr) {
    if (file->text() == nullptr) return manifest_member_error("structure_file");
    manifest.structure_file = *file->text();
  }
  for (const auto& [name, target] :
       {std::pair{"metadata", &manifest.metadata}, {"extras", &manifest.extras}}) {
    const Json* member = json.find(name);
    if (member == nullptr) continue;
    if (!member->is_null() && member->object() == nullptr) return manifest_member_error(name);
    *target = *member;
  }
  return {};
}

}  // namespace

bool may_be_manifest(std::string_view text) {
  constexpr std::array kMembers = {
      "\"format\"", "\"layout\"", "\"prefix\"", "\"step\"",        "\"attempt\"", "\"run_id\"",
      "\"time\"",   "\"writer\"", "\"ranks\"",  "\"metadata\"",    "\"extras\"",  "\"structure\"",
      "\"arrays\"", "\"digest\"", "\"crcs\"",   "\"block_bytes\"", "\"lengths\""};
  const auto is_missing = [text](const char* member) { return text.find(member) == text.npos; };
  return std::ranges::count_if(kMembers, is_missing) <= 1;
}

Result<Manifest> parse_manifest(std::string_view text) {
  auto json = parse_json(text, kLimits);
  if (!json || json->object() == nullptr) {
    return Error(Code::kCorrupt, "manifest/bad-json",
                 json ? "the manifest is not a JSON object" : json.error().to_string());
  }
  Manifest manifest;
  CAIRN_TRY(parse_head(*json, manifest));
  Json* structure = nullptr;
  for (auto& [name, member] : *json->object()) {
    if (name == "structure") structure = &member;
  }
  if (structure == nullptr) return manifest_member_error("structure");
  manifest.structure = std::move(*structure);
  CAIRN_TRY_ASSIGN(auto leaves, structure_leaves(manifest.structure));
  CAIRN_TRY(columns_from_json(*json, std::move(leaves.arrays), manifest));
  if (root_digest(manifest) != manifest.digest) {
    return Error(Code::kCorrupt, "manifest/digest",
                 "the manifest's digest does not match its contents: it was damaged or edited");
  }
  return manifest;
}

}  // namespace cairn
