// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/index.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/format/safetensors/quoted.h"

namespace cairn::format::safetensors {
namespace {

Error bad_index(const char* reason, std::string message) {
  return Error(Code::kCorrupt, reason, std::move(message));
}

// A member that may be there once; null if it is not.
Result<const Json*> find_once(const Json::Object& object, std::string_view name) {
  const Json* found = nullptr;
  for (const auto& [member, value] : object) {
    if (member != name) continue;
    if (found != nullptr) {
      return bad_index("safetensors-index/duplicate-member",
                       fmt::format("the index has more than one {}", name));
    }
    found = &value;
  }
  return found;
}

Result<std::string> parse_part(const Json& value) {
  const std::string* part = value.text();
  if (part == nullptr) {
    return bad_index("safetensors-index/part-type",
                     fmt::format("its part is {}, not the name of a file", value.kind_name()));
  }
  if (!is_safe_relative_path(*part)) {
    return bad_index("safetensors-index/part-path",
                     fmt::format("its part {} is not a file below the index's folder; "
                                 "move the part there and name it by its relative path",
                                 quoted(*part)));
  }
  return *part;
}

Result<WeightMap> parse_weight_map(const Json::Object& members) {
  WeightMap map;
  map.reserve(members.size());
  for (const auto& [tensor, value] : members) {
    const auto place = [&name = tensor] { return "tensor " + quoted(name); };
    CAIRN_TRY_ASSIGN(std::string part, parse_part(value).in(place));
    map.emplace_back(tensor, std::move(part));
  }
  std::ranges::sort(map);
  const auto repeated = std::ranges::unique(map);
  map.erase(repeated.begin(), repeated.end());
  const auto twin = std::ranges::adjacent_find(map, {}, &WeightMap::value_type::first);
  if (twin == map.end()) return map;
  return bad_index("safetensors-index/duplicate-tensor",
                   fmt::format("tensor {} is said to be in {} and in {}", quoted(twin->first),
                               quoted(twin->second), quoted(std::next(twin)->second)));
}

bool ends_with_five_digits(std::string_view text) {
  return text.size() >= 5 && std::ranges::all_of(text.substr(text.size() - 5),
                                                 [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::string> Index::parts() const {
  std::vector<std::string> names;
  names.reserve(weight_map.size());
  for (const auto& [tensor, part] : weight_map) names.push_back(part);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

Result<Index> parse_index(std::string_view text) {
  auto parsed = parse_json(
      text, {.bytes = kMaxIndexBytes, .values = kMaxIndexValues, .repeated = Repeated::kKeep});
  if (!parsed) return bad_index("safetensors-index/not-json", parsed.error().message());
  if (parsed->object() == nullptr) {
    return bad_index("safetensors-index/not-json",
                     fmt::format("the index is {}, not an object", parsed->kind_name()));
  }
  CAIRN_TRY_ASSIGN(const Json* metadata, find_once(*parsed->object(), "metadata"));
  CAIRN_TRY_ASSIGN(const Json* weight_map, find_once(*parsed->object(), "weight_map"));
  if (weight_map == nullptr) {
    return bad_index("safetensors-index/no-weight-map",
                     "the index has no weight_map, so it names no part");
  }
  if (weight_map->object() == nullptr) {
    return bad_index("safetensors-index/weight-map-type",
                     fmt::format("weight_map is {}, not an object", weight_map->kind_name()));
  }
  if (metadata != nullptr && !metadata->is_null() && metadata->object() == nullptr) {
    return bad_index("safetensors-index/metadata-type",
                     fmt::format("metadata is {}, not an object", metadata->kind_name()));
  }
  CAIRN_TRY_ASSIGN(auto map, parse_weight_map(*weight_map->object()));
  return Index{std::move(map), metadata == nullptr ? Json() : *metadata};
}

std::string dump_index(const Index& index, std::uint64_t total_size) {
  Json metadata = index.metadata;
  metadata.set("total_size", total_size);
  Json::Object weight_map;
  weight_map.reserve(index.weight_map.size());
  for (const auto& [tensor, part] : index.weight_map) weight_map.emplace_back(tensor, Json(part));
  Json::Object root;
  root.emplace_back("metadata", std::move(metadata));
  root.emplace_back("weight_map", std::move(weight_map));
  return dump_json(Json(std::move(root)), {.indent = 2, .ascii = true});
}

std::string shard_filename(std::string_view base, std::size_t part, std::size_t parts) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", base, part, parts);
}

std::string index_filename(std::string_view base) {
  return fmt::format("{}.safetensors.index.json", base);
}

std::string derive_base_prefix_from_path(std::string_view path) {
  constexpr std::string_view kFile = ".safetensors";
  constexpr std::string_view kIndex = ".safetensors.index.json";
  if (path.ends_with(kIndex)) return std::string(path.substr(0, path.size() - kIndex.size()));
  if (path.ends_with(kFile)) path.remove_suffix(kFile.size());

  // "-00001-of-00003", read from its end.
  std::string_view rest = path;
  for (const std::string_view before : {std::string_view("-of-"), std::string_view("-")}) {
    if (!ends_with_five_digits(rest)) return std::string(path);
    rest.remove_suffix(5);
    if (!rest.ends_with(before)) return std::string(path);
    rest.remove_suffix(before.size());
  }
  return std::string(rest);
}

}  // namespace cairn::format::safetensors
