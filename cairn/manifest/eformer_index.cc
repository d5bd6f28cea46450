// SPDX-License-Identifier: Apache-2.0
#include "cairn/manifest/eformer_index.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/uri.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

Error bad_index(std::string_view what) {
  return Error(Code::kCorrupt, "index/bad-member",
               fmt::format("tensorstore_index.json: {} is missing or has the wrong type", what));
}

Result<IndexedArray> parse_array(const Json& json) {
  IndexedArray array;
  const Json* path = json.find("path");
  const Json* shape = json.find("shape");
  const Json* dtype = json.find("dtype");
  if (path == nullptr || path->text() == nullptr) return bad_index("an array's path");
  if (shape == nullptr || shape->array() == nullptr) return bad_index("an array's shape");
  if (dtype == nullptr || dtype->text() == nullptr) return bad_index("an array's dtype");
  array.path = *path->text();
  array.dtype = *dtype->text();
  if (!is_safe_relative_path(array.path)) {
    return Error(Code::kCorrupt, "index/unsafe-path",
                 fmt::format("tensorstore_index.json names '{}', which does not lie inside the "
                             "checkpoint",
                             array.path));
  }
  for (const Json& size : *shape->array()) {
    const auto value = size.integral();
    if (!value || *value < 0) return bad_index("an array's shape");
    array.shape.push_back(*value);
  }
  return array;
}

Result<std::vector<IndexedArray>> parse_list(const Json& json) {
  if (json.array() == nullptr) return bad_index("a list of arrays");
  std::vector<IndexedArray> arrays;
  arrays.reserve(json.array()->size());
  for (const Json& item : *json.array()) {
    CAIRN_TRY_ASSIGN(auto array, parse_array(item));
    arrays.push_back(std::move(array));
  }
  std::vector<std::string_view> paths;
  paths.reserve(arrays.size());
  for (const IndexedArray& array : arrays) paths.push_back(array.path);
  std::ranges::sort(paths);
  if (const auto twice = std::ranges::adjacent_find(paths); twice != paths.end()) {
    return Error(Code::kCorrupt, "index/duplicate-path",
                 fmt::format("tensorstore_index.json names '{}' twice", *twice));
  }
  return arrays;
}

Result<void> check_count(const Json::Object& prefixes, Code code) {
  if (prefixes.size() <= kMaxIndexedPrefixes) return {};
  return Error(code, "index/too-many-prefixes",
               fmt::format("tensorstore_index.json with {} prefixes; at most {} are read",
                           prefixes.size(), kMaxIndexedPrefixes));
}

void erase_member(Json& object, std::string_view name) {
  std::erase_if(*object.object(), [&](const auto& member) { return member.first == name; });
}

}  // namespace

const std::vector<IndexedArray>* EformerIndex::find(std::string_view prefix) const {
  if (prefix.empty()) return arrays ? &*arrays : nullptr;
  const auto found = std::ranges::find(prefixes, prefix, &IndexedPrefix::name);
  return found != prefixes.end() ? &found->arrays : nullptr;
}

Result<EformerIndex> parse_eformer_index(std::string_view text) {
  auto parsed = parse_json(text, kEformerIndexLimits);
  if (!parsed || parsed->object() == nullptr) {
    return Error(Code::kCorrupt, "index/bad-json",
                 "tensorstore_index.json: " +
                     (parsed ? std::string("not an object") : parsed.error().to_string()));
  }
  const Json* format = parsed->find("format");
  if (format == nullptr || format->text() == nullptr || *format->text() != "tensorstore") {
    return Error(Code::kCorrupt, "index/format",
                 fmt::format("tensorstore_index.json: unsupported index format: {}; 'format' must "
                             "be \"tensorstore\"",
                             format == nullptr ? "none" : dump_json(*format).substr(0, 100)));
  }
  EformerIndex index;
  const Json* prefixes = parsed->find("prefixes");
  index.knows_prefixes = prefixes != nullptr;
  const Json* arrays = parsed->find("arrays");
  if (prefixes == nullptr && arrays == nullptr) return bad_index("'prefixes' or 'arrays'");
  if (arrays != nullptr) {
    CAIRN_TRY_ASSIGN(index.arrays, parse_list(*arrays));
  }
  if (prefixes != nullptr) {
    if (prefixes->object() == nullptr) return bad_index("'prefixes'");
    CAIRN_TRY(check_count(*prefixes->object(), Code::kCorrupt));
    for (const auto& [name, list] : *prefixes->object()) {
      CAIRN_TRY_ASSIGN(auto parsed_list, parse_list(list));
      index.prefixes.push_back({name, std::move(parsed_list)});
    }
  }
  return index;
}

std::string part_of_reference(std::string_view part) {
  constexpr std::string_view kBefore = "<flat index ";
  constexpr std::string_view kAfter = ">";
  if (part.size() <= kBefore.size() + kAfter.size() || !part.starts_with(kBefore) ||
      !part.ends_with(kAfter))
    return std::string(part);
  const auto number = part.substr(kBefore.size(), part.size() - kBefore.size() - kAfter.size());
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  return std::string(std::ranges::all_of(number, is_digit) ? number : part);
}

std::vector<IndexedArray> indexed_arrays(const Manifest& manifest) {
  const std::string directory = prefix_directory(manifest.prefix);
  std::vector<IndexedArray> arrays;
  arrays.reserve(manifest.arrays.size());
  for (const ManifestArray& array : manifest.arrays) {
    arrays.push_back({join_path(directory, array.stored.key), array.stored.shape,
                      std::string(dtype_name(array.stored.dtype))});
  }
  return arrays;
}

Json index_list(const std::vector<IndexedArray>& arrays) {
  Json::Array list;
  list.reserve(arrays.size());
  for (const IndexedArray& array : arrays) {
    list.emplace_back(Json::Object{{"path", array.path},
                                   {"shape", Json::Array(array.shape.begin(), array.shape.end())},
                                   {"dtype", array.dtype}});
  }
  return list;
}

Result<std::optional<std::string>> merge_eformer_index(std::optional<std::string_view> current,
                                                       const IndexChanges& changes) {
  Json index(
      Json::Object{{"format", "tensorstore"}, {"version", "2.0"}, {"prefixes", Json::Object{}}});
  if (current) {
    auto parsed = parse_json(*current, kEformerIndexLimits);
    if (parsed && parsed->object() != nullptr) index = *std::move(parsed);
    index.set("format", "tensorstore");
    if (index.find("version") == nullptr) index.set("version", "2.0");
  }
  const Json* there = index.find("prefixes");
  Json prefixes = there != nullptr && there->object() != nullptr ? *there : Json(Json::Object{});
  for (const auto& [name, list] : changes) {
    Json& owner = name.empty() ? index : prefixes;
    const std::string_view member = name.empty() ? std::string_view("arrays") : name;
    if (list) {
      owner.set(member, *list);
    } else {
      erase_member(owner, member);
    }
  }
  const bool bare = prefixes.object()->empty() && index.find("arrays") == nullptr;
  if (bare && !current) return std::optional<std::string>();
  CAIRN_TRY(check_count(*prefixes.object(), Code::kInvalidArgument));
  index.set("prefixes", std::move(prefixes));
  return std::optional(dump_json(index, JsonStyle{.indent = 2, .ascii = true}));
}

}  // namespace cairn
