// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/safetensors_opener.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "cairn/format/safetensors/reader.h"
#include "cairn/layout/foreign_names.h"
#include "cairn/layout/strangers.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/names.h"
#include "cairn/storage/pinned_store.h"
#include "cairn/tree/structure.h"

namespace cairn {

namespace {

namespace st = format::safetensors;

constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

OpenedPrefix foreign_prefix(std::shared_ptr<storage::Store> store, std::string name) {
  OpenedPrefix prefix;
  prefix.name = std::move(name);
  prefix.foreign = true;
  prefix.store = std::move(store);
  prefix.manifest.layout = kSafetensorsLayout;
  return prefix;
}

void add_tensor(OpenedPrefix& prefix, const st::Header& header, const st::Tensor& tensor,
                const std::string& key) {
  ManifestArray array;
  array.stored = header.stored_array(tensor, key);
  prefix.manifest.arrays.push_back(std::move(array));
  prefix.names.push_back(tensor.name);
}

void name_arrays(OpenedPrefix& prefix) {
  auto paths = paths_of_names(prefix.names);
  for (std::size_t i = 0; i < paths.size(); ++i)
    prefix.manifest.arrays[i].path = std::move(paths[i]);
}

/// The manifest inside a file counts only while it agrees with the file's own header.
bool adopt(Manifest& manifest, const st::Header& header, const std::string& name) {
  if (manifest.parts.size() != 1 || manifest.arrays.size() != header.tensors.size()) return false;
  std::unordered_map<std::string_view, const st::Tensor*> tensors;
  for (const st::Tensor& tensor : header.tensors) tensors.emplace(tensor.name, &tensor);
  manifest.parts.front() = {name, header.data_start + header.data_bytes, header.data_start, {}};
  for (ManifestArray& array : manifest.arrays) {
    const auto found = tensors.find(array.path.text());
    if (found == tensors.end() || found->second->dtype != array.stored.dtype ||
        found->second->shape != array.stored.shape || found->second->begin != array.stored.offset) {
      return false;
    }
    array.stored = header.stored_array(*found->second, name);
  }
  return true;
}

Result<std::optional<Manifest>> embedded_manifest(const st::Header& header,
                                                  const std::string& name) {
  const auto found = std::ranges::find(header.metadata, kEmbeddedManifest,
                                       &std::pair<std::string, std::string>::first);
  // Others may have used the same key.
  if (found == header.metadata.end() || !may_be_manifest(found->second))
    return std::optional<Manifest>();
  CAIRN_TRY_ASSIGN(auto manifest, parse_manifest(found->second));
  if (!adopt(manifest, header, name)) return std::optional<Manifest>();
  return std::optional(std::move(manifest));
}

Result<OpenedPrefix> open_set(const DirectoryView& view, const std::string& index_name) {
  const auto store = storage::pin_objects(view.store);
  CAIRN_TRY_ASSIGN(const auto index, st::read_index(*store, index_name));
  CAIRN_TRY_ASSIGN(const auto parts, st::read_parts(*store, "", index));
  std::unordered_map<std::string_view, std::string_view> part_of(index.weight_map.begin(),
                                                                 index.weight_map.end());
  OpenedPrefix prefix =
      foreign_prefix(store, index_name.substr(0, index_name.size() - kIndexSuffix.size()));
  prefix.manifest.metadata = index.metadata;
  for (const st::Part& part : parts) {
    for (const st::Tensor& tensor : part.header.tensors) {
      const auto found = part_of.find(tensor.name);
      if (found != part_of.end() && found->second == part.key) {
        add_tensor(prefix, part.header, tensor, part.key);
      }
    }
  }
  name_arrays(prefix);
  return prefix;
}

}  // namespace

Result<OpenedPrefix> open_safetensors_file(const std::shared_ptr<storage::Store>& directory,
                                           const std::string& name) {
  auto store = storage::pin_objects(directory);
  if (auto stranger = recognise_file(*store, name)) return *std::move(stranger);
  CAIRN_TRY_ASSIGN(const auto header, st::read_header(*store, name));
  CAIRN_TRY_ASSIGN(auto manifest, embedded_manifest(header, name));
  if (manifest) {
    OpenedPrefix prefix;
    prefix.name = manifest->prefix;
    prefix.store = std::move(store);
    CAIRN_TRY_ASSIGN(auto leaves, structure_leaves(manifest->structure));
    prefix.values = std::move(leaves.values);
    prefix.manifest = *std::move(manifest);
    for (const ManifestArray& array : prefix.manifest.arrays)
      prefix.names.push_back(array.path.text());
    return prefix;
  }
  OpenedPrefix prefix = foreign_prefix(std::move(store), "");
  // The header has each key once.
  Json::Object metadata;
  for (const auto& [key, text] : header.metadata) {
    if (key != kEmbeddedManifest || !may_be_manifest(text)) metadata.emplace_back(key, text);
  }
  if (!metadata.empty()) prefix.manifest.metadata = std::move(metadata);
  for (const st::Tensor& tensor : header.tensors) add_tensor(prefix, header, tensor, name);
  name_arrays(prefix);
  return prefix;
}

Result<std::optional<Checkpoint>> open_safetensors(const DirectoryView& view, Runtime& runtime) {
  static_cast<void>(runtime);
  Checkpoint checkpoint;
  checkpoint.kind = "safetensors";
  std::unordered_set<std::string> covered;
  for (const std::string& file : view.files) {
    if (!file.ends_with(kIndexSuffix)) continue;
    CAIRN_TRY_ASSIGN(auto prefix, open_set(view, file));
    for (const ManifestArray& array : prefix.manifest.arrays) covered.insert(array.stored.key);
    checkpoint.prefixes.push_back(std::move(prefix));
  }
  for (const std::string& file : view.files) {
    if (!file.ends_with(kSuffix) || covered.contains(file)) continue;
    CAIRN_TRY_ASSIGN(auto prefix, open_safetensors_file(view.store, file));
    if (prefix.name.empty()) prefix.name = file.substr(0, file.size() - kSuffix.size());
    checkpoint.prefixes.push_back(std::move(prefix));
  }
  if (checkpoint.prefixes.empty()) return std::optional<Checkpoint>();
  checkpoint.notes.push_back("written by another system: nothing could be checked but the headers");
  return std::optional(std::move(checkpoint));
}

}  // namespace cairn
