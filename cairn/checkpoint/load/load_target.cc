// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/load/load_target.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace cairn::inline checkpoint {

namespace {

bool has_axes(const Mesh& mesh, const PartitionSpec& spec) {
  return std::ranges::all_of(spec.entries(), [&](const PartitionSpec::Entry& entry) {
    return std::ranges::all_of(
        entry, [&](const std::string& axis) { return mesh.find_axis(axis).has_value(); });
  });
}

}  // namespace

Result<LoadTarget> LoadTarget::make(const OpenedPrefix& prefix, const LoadOptions& options) {
  LoadTarget target(prefix, options);
  target.by_rule_.resize(prefix.manifest.arrays.size());
  if (options.partition_rules == nullptr) return target;
  if (!options.mesh) {
    return Error(Code::kInvalidArgument, "load/no-mesh",
                 "partition rules say how leaves lie on a mesh; give the mesh too");
  }
  std::vector<std::size_t> asked;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
    const KeyPath& path = prefix.manifest.arrays[i].path;
    const bool given = options.shardings != nullptr && options.shardings->contains(path);
    if (given || !is_selected(path, options.keys)) continue;
    asked.push_back(i);
    keys.push_back(rule_key(path));
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
  if (options_->shardings != nullptr) {
    const auto found = options_->shardings->find(array.path);
    if (found != options_->shardings->end()) return found->second;
  }
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

}  // namespace cairn::inline checkpoint
