// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_target.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace cairn {

namespace {

bool has_axes(const Mesh& mesh, const PartitionSpec& spec) {
  return std::ranges::all_of(spec.entries(), [&](const PartitionSpec::Entry& entry) {
    return std::ranges::all_of(
        entry, [&](const std::string& axis) { return mesh.find_axis(axis).has_value(); });
  });
}

const Sharding* given_sharding(const OpenedPrefix& prefix, const KeyPath& path,
                               const LoadOptions& options) {
  if (options.shardings == nullptr) return nullptr;
  const auto found = options.shardings->find(seen_path(prefix, path, options));
  return found != options.shardings->end() ? &found->second : nullptr;
}

Result<void> check_all_named(const OpenedPrefix& prefix, const LoadOptions& options) {
  if (options.shardings == nullptr || options.mismatch_allowed) return {};
  std::string unnamed;
  for (const ManifestArray& array : prefix.manifest.arrays) {
    if (!is_selected(array.path, options.keys)) continue;
    if (given_sharding(prefix, array.path, options) != nullptr) continue;
    unnamed += fmt::format("{}{}", unnamed.empty() ? "" : ", ", array.path.text());
  }
  if (unnamed.empty()) return {};
  return Error(
      Code::kInvalidArgument, "load/unnamed-leaves",
      fmt::format("the shardings do not name: {}; name them, or allow the mismatch", unnamed));
}

}  // namespace

KeyPath seen_path(const OpenedPrefix& prefix, const KeyPath& path, const LoadOptions& options) {
  if (!options.keys_with_prefix || prefix.name.empty()) return path;
  std::vector<std::string> parts{prefix.name};
  parts.insert(parts.end(), path.parts().begin(), path.parts().end());
  return KeyPath(std::move(parts));
}

Result<LoadTarget> LoadTarget::make(const OpenedPrefix& prefix, const LoadOptions& options) {
  CAIRN_TRY(check_all_named(prefix, options));
  LoadTarget target(prefix, options);
  target.by_rule_.resize(prefix.manifest.arrays.size());
  if (options.choose_shardings) {
    CAIRN_TRY_ASSIGN(target.chosen_, options.choose_shardings(prefix));
    target.chosen_.resize(prefix.manifest.arrays.size());
  }
  if (options.partition_rules == nullptr) return target;
  if (!options.mesh) {
    return Error(Code::kInvalidArgument, "load/no-mesh",
                 "partition rules say how leaves lie on a mesh; give the mesh too");
  }
  std::vector<std::size_t> asked;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    const KeyPath& path = prefix.manifest.arrays[i].path;
    const bool given = given_sharding(prefix, path, options) != nullptr;
    if (given || !is_selected(path, options.keys)) continue;
    asked.push_back(i);
    keys.push_back(rule_key(seen_path(prefix, path, options)));
  }
  std::vector<RuleLeaf> leaves;
  for (std::size_t n = 0; n < asked.size(); ++n)
    leaves.push_back({keys[n], &prefix.manifest.arrays[asked[n]].stored.shape});
  CAIRN_TRY_ASSIGN(auto specs, match_partition_rules(*options.partition_rules, leaves));
  for (std::size_t n = 0; n < asked.size(); ++n) target.by_rule_[asked[n]] = std::move(specs[n]);
  return target;
}

Result<Sharding> LoadTarget::choose(std::size_t i, const ShardedArray* like) const {
  const ManifestArray& array = prefix_->manifest.arrays[i];
  if (i < chosen_.size() && chosen_[i]) return *chosen_[i];
  if (const Sharding* given = given_sharding(*prefix_, array.path, *options_)) return *given;
  const auto on_mesh = [&](const PartitionSpec& spec) -> Result<Sharding> {
    CAIRN_TRY_ASSIGN(auto named, NamedSharding::make(*options_->mesh, spec));
    return Sharding(std::move(named));
  };
  if (by_rule_[i]) return on_mesh(*by_rule_[i]);
  if (like != nullptr && like->sharding() != Sharding()) return like->sharding();
  if (!options_->mesh) return Sharding();
  if (array.spec && has_axes(*options_->mesh, *array.spec)) return on_mesh(*array.spec);
  if (options_->mesh->axes().size() <= 1) return on_mesh({});
  return Error(Code::kInvalidArgument, "load/no-sharding",
               "nothing says how it lies on a mesh of several axes; give partition rules or its "
               "sharding");
}

Result<Sharding> LoadTarget::sharding_of(std::size_t i, const ShardedArray* like) const {
  const ManifestArray& array = prefix_->manifest.arrays[i];
  const auto place = [&] { return "leaf " + array.path.text(); };
  CAIRN_TRY_ASSIGN(auto sharding, choose(i, like).in(place));
  CAIRN_TRY(sharding.check(like != nullptr ? like->shape() : array.stored.shape).in(place));
  return sharding;
}

}  // namespace cairn
