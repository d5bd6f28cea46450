// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_target.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/error_list.h"
#include "cairn/load/seen_path.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

bool has_axes(const Mesh& mesh, const PartitionSpec& spec) {
  return std::ranges::all_of(spec.entries(), [&](const PartitionSpec::Entry& entry) {
    return std::ranges::all_of(
        entry, [&](const std::string& axis) { return mesh.find_axis(axis).has_value(); });
  });
}

bool lies_on(const Mesh& mesh, const Sharding& sharding) {
  return sharding.named() != nullptr && sharding.named()->mesh() == mesh;
}

Error no_mesh() {
  return {Code::kInvalidArgument, "load/no-mesh",
          "specs and partition rules say how leaves lie on a mesh; give the mesh too"};
}

}  // namespace

LoadTarget::LoadTarget(const OpenedPrefix& prefix, const LoadOptions& options)
    : prefix_(&prefix),
      options_(&options),
      given_(prefix.manifest.arrays.size()),
      by_rule_(prefix.manifest.arrays.size()) {
  for (std::size_t i = 0; i < given_.size(); ++i) {
    if (is_selected(path(i), options_->keys)) selected_.push_back(i);
  }
}

Result<LoadTarget> LoadTarget::make(const OpenedPrefix& prefix, const LoadOptions& options) {
  LoadTarget target(prefix, options);
  CAIRN_TRY(target.take_wishes());
  CAIRN_TRY(target.check_all_named());
  CAIRN_TRY(target.ask_rules());
  return target;
}

Result<void> LoadTarget::take_wishes() {
  std::vector<std::optional<ShardingWish>> wishes;
  if (options_->choose_shardings) {
    CAIRN_TRY_ASSIGN(wishes, options_->choose_shardings(*prefix_));
  }
  wishes.resize(given_.size());
  ErrorList errors;
  for (const std::size_t i : selected_) {
    if (wishes[i]) {
      const auto* spec = std::get_if<PartitionSpec>(&*wishes[i]);
      if (spec != nullptr && !options_->mesh) return no_mesh();
      auto sharding = spec != nullptr ? on_mesh(*spec).in([&] { return "leaf " + path(i).text(); })
                                      : std::get<Sharding>(*std::move(wishes[i]));
      if (errors.take(sharding)) given_[i] = *std::move(sharding);
    } else if (options_->shardings != nullptr) {
      const auto named = options_->shardings->find(seen_path(*prefix_, path(i), *options_));
      if (named != options_->shardings->end()) given_[i] = named->second;
    }
  }
  return errors.result();
}

Result<void> LoadTarget::check_all_named() const {
  const bool names_any = options_->shardings != nullptr || options_->choose_shardings;
  if (!names_any || options_->mismatch_allowed) return {};
  std::string unnamed;
  for (const std::size_t i : selected_) {
    if (!given_[i]) unnamed += fmt::format("{}{}", unnamed.empty() ? "" : ", ", path(i).text());
  }
  if (unnamed.empty()) return {};
  return Error(
      Code::kInvalidArgument, "load/unnamed-leaves",
      fmt::format("the shardings do not name: {}; name them, or allow the mismatch", unnamed));
}

Result<void> LoadTarget::ask_rules() {
  if (options_->partition_rules == nullptr) return {};
  if (!options_->mesh) return no_mesh();
  std::vector<std::size_t> asked = selected_;
  std::erase_if(asked, [&](std::size_t i) { return given_[i].has_value(); });
  std::vector<std::string> keys;
  keys.reserve(asked.size());
  for (const std::size_t i : asked)
    keys.push_back(rule_key(seen_path(*prefix_, path(i), *options_)));
  std::vector<RuleLeaf> leaves;
  leaves.reserve(asked.size());
  for (std::size_t n = 0; n < asked.size(); ++n)
    leaves.push_back({keys[n], &prefix_->manifest.arrays[asked[n]].stored.shape});
  CAIRN_TRY_ASSIGN(auto specs, match_partition_rules(*options_->partition_rules, leaves));
  for (std::size_t n = 0; n < asked.size(); ++n) by_rule_[asked[n]] = std::move(specs[n]);
  return {};
}

Result<Sharding> LoadTarget::on_mesh(const PartitionSpec& spec) const {
  CAIRN_TRY_ASSIGN(auto named, NamedSharding::make(*options_->mesh, spec));
  return Sharding(std::move(named));
}

bool LoadTarget::is_replicated(const ManifestArray& array) const {
  if (options_->replicate == Replicate::kAll || options_->mesh->axes().size() <= 1) return true;
  if (options_->replicate == Replicate::kOnOneAxis || array.spec) return false;
  return !prefix_->foreign || array.stored.shape.empty();  // others do not say how arrays lay
}

Result<Sharding> LoadTarget::choose(std::size_t i, const ShardedArray* like) const {
  const ManifestArray& array = prefix_->manifest.arrays[i];
  if (given_[i]) return *given_[i];
  if (by_rule_[i]) return on_mesh(*by_rule_[i]);
  Sharding theirs = like != nullptr ? like->sharding() : Sharding();
  const bool is_file = prefix_->manifest.layout == kSafetensorsLayout;
  if (!options_->mesh || (is_file && !options_->mesh_for_safetensors)) return theirs;
  if (options_->as_saved) {
    if (lies_on(*options_->mesh, theirs)) return theirs;
    if (array.spec && has_axes(*options_->mesh, *array.spec)) return on_mesh(*array.spec);
  }
  if (is_replicated(array)) return on_mesh({});
  return Error(Code::kInvalidArgument, "load/no-sharding",
               fmt::format("No sharding specified for '{}' on multi-axis mesh: nothing says how to "
                           "place it there; provide 'shardings' or 'partition_rules'",
                           seen_path(*prefix_, array.path, *options_).text()));
}

Result<Sharding> LoadTarget::sharding_of(std::size_t i, const ShardedArray* like) const {
  const ManifestArray& array = prefix_->manifest.arrays[i];
  const auto place = [&] { return "leaf " + array.path.text(); };
  CAIRN_TRY_ASSIGN(auto sharding, choose(i, like).in(place));
  CAIRN_TRY(sharding.check(like != nullptr ? like->shape() : array.stored.shape).in(place));
  return sharding;
}

Result<std::vector<Sharding>> LoadTarget::shardings_of(
    const std::vector<std::size_t>& arrays) const {
  std::vector<Sharding> shardings;
  ErrorList errors;
  for (const std::size_t i : arrays) {
    auto sharding = sharding_of(i, nullptr);
    if (errors.take(sharding)) shardings.push_back(*std::move(sharding));
  }
  CAIRN_TRY(errors.result());
  return shardings;
}

}  // namespace cairn
