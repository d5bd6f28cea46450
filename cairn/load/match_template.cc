// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/match_template.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/array/cast.h"
#include "cairn/base/error_list.h"
#include "cairn/sharding/make_sharded.h"
#include "cairn/tree/flatten.h"

namespace cairn {

namespace {

class Matcher {
 public:
  Matcher(const OpenedPrefix& prefix, const LoadOptions& options, const LoadTarget& target,
          int rank, LoadReport& report)
      : prefix_(prefix), options_(options), target_(target), rank_(rank), report_(report) {
    for (std::size_t i = 0; i < prefix.manifest.arrays.size(); ++i) {
      const KeyPath& path = prefix.manifest.arrays[i].path;
      if (is_selected(path, options.keys)) arrays_.emplace(path.text(), i);
    }
    for (std::size_t i = 0; i < prefix.values.size(); ++i) {
      const KeyPath& path = prefix.values[i].first;
      if (is_selected(path, options.keys)) values_.emplace(path.text(), i);
    }
  }

  Result<TemplateMatch> match() {
    CAIRN_TRY_ASSIGN(auto leaves, flatten(*options_.like));
    CAIRN_TRY(check_keys(leaves));
    ErrorList errors;
    for (NamedLeaf& leaf : leaves) {
      if (is_selected(leaf.path, options_.keys)) {
        errors.take(add(leaf));
      } else {
        match_.leaves.push_back(std::move(leaf.leaf));
      }
    }
    for (const auto& [key, index] : arrays_) {
      if (index != kTaken) report_.unexpected.push_back(key);
    }
    for (const auto& [key, index] : values_) {
      if (index != kTaken) report_.unexpected.push_back(key);
    }
    std::ranges::sort(report_.unexpected);
    ErrorList all;
    all.take(check_strict());
    all.take(errors.result());
    CAIRN_TRY(all.result());
    return std::move(match_);
  }

 private:
  static constexpr std::size_t kTaken = ~std::size_t{0};

  Result<void> check_keys(const std::vector<NamedLeaf>& leaves) const {
    std::vector<std::string> missing;
    for (const KeyPath& key : options_.keys) {
      const auto hit = [&](const KeyPath& leaf) { return leaf.starts_with(key); };
      if (!std::ranges::any_of(leaves, hit, &NamedLeaf::path)) missing.push_back(key.text());
    }
    if (missing.empty()) return {};
    return Error(
        Code::kNotFound, "load/key-missing",
        fmt::format("the template has no leaf or subtree '{}'", fmt::join(missing, "', '")));
  }

  Result<void> add(NamedLeaf& leaf) {
    const std::string key = leaf.path.text();
    if (const auto array = arrays_.find(key); array != arrays_.end()) {
      const std::size_t index = std::exchange(array->second, kTaken);
      return add_array(key, leaf, index);
    }
    if (const auto value = values_.find(key); value != values_.end()) {
      const std::size_t index = std::exchange(value->second, kTaken);
      add_value(key, leaf, prefix_.values[index].second);
      return {};
    }
    report_.missing.push_back(key);
    const bool is_array = std::holds_alternative<ShardedArray>(leaf.leaf);
    if (is_array || !prefix_.foreign) {  // most others store arrays alone
      missing_ += fmt::format("{}Missing {} for key '{}'", missing_.empty() ? "" : "; ",
                              is_array ? "array" : "value", key);
    }
    keep(key, leaf);
    return {};
  }

  /// Nothing in the checkpoint takes the place of this leaf.
  void keep(const std::string& key, NamedLeaf& leaf) {
    report_.kept.push_back(key);
    match_.leaves.push_back(std::move(leaf.leaf));
  }

  void add_value(const std::string& key, NamedLeaf& leaf, const Value& value) {
    const auto* wanted = std::get_if<ShardedArray>(&leaf.leaf);
    if (wanted == nullptr && options_.keep_values && prefix_.foreign) return keep(key, leaf);
    if (wanted == nullptr || takes_place_of(value, *wanted)) {
      match_.leaves.push_back(value);
      report_.loaded.push_back(key);
      return;
    }
    report_.mismatched.push_back(key);
    mismatched_ +=
        fmt::format("{}Array shape mismatch for key '{}': expected {}, the checkpoint has no array",
                    mismatched_.empty() ? "" : "; ", key, to_string(wanted->shape()));
    keep(key, leaf);
  }

  /// A number is as good as an array of one, unless that is to be filled.
  bool takes_place_of(const Value& value, const ShardedArray& wanted) const {
    const bool is_number = !std::holds_alternative<std::monostate>(value) &&
                           !std::holds_alternative<std::string>(value) &&
                           !std::holds_alternative<Bytes>(value);
    return is_number && wanted.shape().empty() && !options_.fill;
  }

  Result<void> add_array(const std::string& key, NamedLeaf& leaf, std::size_t index) {
    const format::StoredArray& stored = prefix_.manifest.arrays[index].stored;
    const auto* wanted = std::get_if<ShardedArray>(&leaf.leaf);
    const Shape shape = wanted != nullptr ? wanted->shape() : stored.shape;
    if (shape != stored.shape) {
      report_.mismatched.push_back(key);
      mismatched_ += fmt::format(
          "{}Array shape mismatch for key '{}': expected {}, the checkpoint has {}",
          mismatched_.empty() ? "" : "; ", key, to_string(shape), to_string(stored.shape));
      CAIRN_TRY_ASSIGN(const std::uint64_t count, element_count(shape));
      if (options_.strict_shapes || count != Box::whole(stored.shape).elements()) {
        keep(key, leaf);
        return {};
      }
    }
    if (wanted != nullptr && options_.like_dtypes) check_dtype(key, wanted->dtype(), stored.dtype);
    CAIRN_TRY_ASSIGN(const Sharding sharding, target_.sharding_of(index, wanted));
    const bool reshapes = shape != stored.shape;
    if (reshapes && options_.fill && sharding != Sharding()) {
      keep(key, leaf);  // memory for boxes of another shape
      return {};
    }
    // Boxes of an array cannot be reshaped one by one: every rank reads it whole.
    CAIRN_TRY_ASSIGN(ShardedArray memory,
                     destination(key, wanted, index, reshapes ? Sharding() : sharding));
    match_.which.push_back(index);
    if (reshapes) {
      CAIRN_TRY_ASSIGN(auto result, reshaped(memory.array(), shape, sharding));
      match_.leaves.emplace_back(std::move(result));
    } else {
      match_.leaves.emplace_back(memory);
    }
    match_.destinations.push_back(std::move(memory));
    return {};
  }

  Result<ShardedArray> reshaped(const Array& whole, const Shape& shape,
                                const Sharding& sharding) const {
    CAIRN_TRY_ASSIGN(const Array array, whole.reshaped(shape));
    if (sharding == Sharding()) return ShardedArray(array);
    return make_sharded(array.dtype(), shape, sharding, rank_,
                        [&](const Box& box) -> Result<Array> { return array.slice(box); });
  }

  void check_dtype(const std::string& key, DType expected, DType stored) {
    if (expected == stored || can_cast(stored, expected)) return;
    report_.mismatched.push_back(key);
    other_dtypes_ += fmt::format(
        "{}Array dtype mismatch for key '{}': expected {}, the checkpoint has {}",
        other_dtypes_.empty() ? "" : "; ", key, dtype_name(expected), dtype_name(stored));
  }

  DType asked_dtype(DType stored, const ShardedArray* wanted) const {
    if (options_.dtype && is_float(stored)) return *options_.dtype;
    const bool takes = wanted != nullptr && options_.like_dtypes;
    return takes && can_cast(stored, wanted->dtype()) ? wanted->dtype() : stored;
  }

  Result<ShardedArray> destination(const std::string& key, const ShardedArray* wanted,
                                   std::size_t index, const Sharding& sharding) const {
    const format::StoredArray& stored = prefix_.manifest.arrays[index].stored;
    const DType asked = asked_dtype(stored.dtype, wanted);
    if (!options_.fill || wanted == nullptr)
      return allocate_sharded(asked, stored.shape, sharding, rank_);
    if (wanted->sharding() != sharding) {
      return Error(Code::kFailedPrecondition, "load/cannot-fill",
                   fmt::format("leaf {}: the template's memory is of another sharding than the "
                               "load asks for",
                               key));
    }
    CAIRN_TRY(check_memory(*wanted, rank_).in([&] { return "leaf " + key; }));
    const auto takes = [](const Shard& shard) {
      return shard.data.dense() && !shard.data.buffer().immutable();
    };
    const bool fits = std::ranges::all_of(wanted->shards(), takes) &&
                      (wanted->dtype() == stored.dtype || can_cast(stored.dtype, wanted->dtype()));
    if (!fits) {
      return Error(
          Code::kFailedPrecondition, "load/cannot-fill",
          fmt::format(
              "leaf {}: the template's memory ({}) cannot take {} in place; it must be dense, "
              "writable, and of the same type or another float",
              key, dtype_name(wanted->dtype()), dtype_name(stored.dtype)));
    }
    if (wanted->shape() == stored.shape) return *wanted;
    CAIRN_TRY_ASSIGN(Array reshaped, wanted->array().reshaped(stored.shape));
    return ShardedArray(std::move(reshaped));
  }

  Result<void> check_strict() const {
    if (!options_.strict_shapes) return {};
    std::string all;
    for (const std::string* some : {&missing_, &mismatched_, &other_dtypes_})
      all += some->empty() ? "" : (all.empty() ? "" : "; ") + *some;
    if (all.empty()) return {};
    return Error(Code::kFailedPrecondition,
                 !missing_.empty()      ? "load/missing-array"
                 : !mismatched_.empty() ? "load/shape-mismatch"
                                        : "load/dtype-mismatch",
                 all);
  }

  const OpenedPrefix& prefix_;
  const LoadOptions& options_;
  const LoadTarget& target_;
  const int rank_;
  LoadReport& report_;
  std::unordered_map<std::string, std::size_t> arrays_;
  std::unordered_map<std::string, std::size_t> values_;
  TemplateMatch match_;
  std::string missing_;
  std::string mismatched_;
  std::string other_dtypes_;
};

}  // namespace

Result<Tree> TemplateMatch::build(const Tree& like) && {
  return with_leaves(like, std::move(leaves));
}

Result<TemplateMatch> match_template(const OpenedPrefix& prefix, const LoadOptions& options,
                                     const LoadTarget& target, int rank, LoadReport& report) {
  return Matcher(prefix, options, target, rank, report).match();
}

}  // namespace cairn
