// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "cairn/array/cast.h"
#include "cairn/inspect/fold_pieces.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"

namespace cairn {

namespace {

std::string describe(const format::StoredArray& array) {
  return fmt::format("{} {}", dtype_name(array.dtype), to_string(array.shape));
}

/// Pieces of one array on both sides.
struct Pair {
  const OpenedPrefix* first = nullptr;
  const OpenedPrefix* second = nullptr;
  std::size_t first_array = 0;
  std::size_t second_array = 0;
  LeafDifference result;
};

/// What comparing one piece found.
struct Found {
  std::uint64_t different = 0;
  std::optional<double> absolute;
  std::optional<double> relative;
};

void raise(std::optional<double>& best, double value) {
  if (!best || value > *best) best = value;
}

void compare_numbers(double a, double b, Found& found) {
  if (!std::isfinite(a) || !std::isfinite(b)) return;
  const double off = std::abs(a - b);
  const double scale = std::max(std::abs(a), std::abs(b));
  raise(found.absolute, off);
  raise(found.relative, scale == 0 ? 0 : off / scale);
}

Found compare_pieces(const Array& a, const Array& b) {
  Found found;
  const std::size_t item_a = item_size(a.dtype());
  const std::size_t item_b = item_size(b.dtype());
  const bool same_type = a.dtype() == b.dtype();
  if (same_type && std::memcmp(a.data(), b.data(), a.nbytes()) == 0) return found;
  const std::uint64_t elements = a.elements();
  for (std::uint64_t i = 0; i < elements; ++i) {
    const std::byte* x = a.data() + i * item_a;
    const std::byte* y = b.data() + i * item_b;
    if (same_type && std::memcmp(x, y, item_a) == 0) continue;
    const double left = element_as_double(a.dtype(), x);
    const double right = element_as_double(b.dtype(), y);
    if (!same_type && (left == right || (std::isnan(left) && std::isnan(right)))) continue;
    ++found.different;
    compare_numbers(left, right, found);
  }
  return found;
}

class Differ {
 public:
  Differ(const DiffOptions& options, Runtime& runtime) : options_(options), runtime_(runtime) {}

  void add(const OpenedPrefix& a, const OpenedPrefix& b) {
    const std::size_t before = report_.differences.size();
    std::map<std::string, std::size_t> arrays;
    std::map<std::string, const Value*> values;
    for (std::size_t i = 0; i < b.manifest.arrays.size(); ++i)
      arrays[b.manifest.arrays[i].path.text()] = i;
    for (const auto& [path, value] : b.values) values[path.text()] = &value;
    for (std::size_t i = 0; i < a.manifest.arrays.size(); ++i) add_array(a, b, i, arrays, values);
    for (const auto& [path, value] : a.values)
      add_value(a, b, {path.text(), &value}, arrays, values);
    for (const auto& [key, index] : arrays) {
      only(DifferenceKind::kOnlyInSecond, b, key, describe(b.manifest.arrays[index].stored));
    }
    for (const auto& [key, value] : values) {
      only(DifferenceKind::kOnlyInSecond, b, key, value_to_text(*value));
    }
    const bool known = !a.foreign && !b.foreign;
    if (known && before == report_.differences.size() &&
        a.manifest.structure != b.manifest.structure) {
      report_.differences.push_back(
          {DifferenceKind::kStructure, a.name, "", "other containers", "", 0, 0, {}, {}});
    }
  }

  void only(DifferenceKind kind, const OpenedPrefix& prefix, const std::string& key,
            const std::string& what) {
    const bool first = kind == DifferenceKind::kOnlyInFirst;
    report_.differences.push_back({kind,
                                   prefix.name,
                                   key,
                                   first ? what : std::string(),
                                   first ? std::string() : what,
                                   0,
                                   0,
                                   {},
                                   {}});
  }

  Result<DiffReport> run() {
    std::vector<const format::StoredArray*> arrays;
    for (const Pair& pair : pairs_) {
      arrays.push_back(&pair.first->manifest.arrays[pair.first_array].stored);
      report_.bytes += pair.result.elements * item_size(arrays.back()->dtype);
    }
    Progress progress(options_.progress, report_.bytes);
    const auto read = [&](std::size_t n, const Box& box) -> Result<Found> {
      const Pair& pair = pairs_[n];
      CAIRN_TRY_ASSIGN(const Array a, load_box(*pair.first, pair.first_array, box, runtime_));
      CAIRN_TRY_ASSIGN(const Array b, load_box(*pair.second, pair.second_array, box, runtime_));
      progress.add(a.nbytes());
      return compare_pieces(a, b);
    };
    CAIRN_TRY(fold_pieces(arrays, runtime_, read, [&](std::size_t n, const Found& found) {
      merge(found, pairs_[n].result);
    }));
    for (Pair& pair : pairs_) finish(pair.result);
    std::ranges::sort(report_.differences, {}, [](const LeafDifference& difference) {
      return std::tie(difference.prefix, difference.key, difference.kind);
    });
    return std::move(report_);
  }

 private:
  using Arrays = std::map<std::string, std::size_t>;
  using Values = std::map<std::string, const Value*>;

  void add_array(const OpenedPrefix& a, const OpenedPrefix& b, std::size_t i, Arrays& arrays,
                 Values& values) {
    const ManifestArray& array = a.manifest.arrays[i];
    const std::string key = array.path.text();
    if (const auto value = values.find(key); value != values.end()) {
      ++report_.compared;
      report_.differences.push_back({DifferenceKind::kKind,
                                     a.name,
                                     key,
                                     describe(array.stored),
                                     value_to_text(*value->second),
                                     0,
                                     0,
                                     {},
                                     {}});
      values.erase(value);
      return;
    }
    const auto found = arrays.find(key);
    if (found == arrays.end())
      return only(DifferenceKind::kOnlyInFirst, a, key, describe(array.stored));
    const format::StoredArray& other = b.manifest.arrays[found->second].stored;
    ++report_.compared;
    LeafDifference result{DifferenceKind::kElements,
                          a.name,
                          key,
                          describe(array.stored),
                          describe(other),
                          Box::whole(array.stored.shape).elements(),
                          0,
                          {},
                          {}};
    const bool floats = is_float(array.stored.dtype) && is_float(other.dtype);
    const bool same_type = array.stored.dtype == other.dtype;
    if (array.stored.shape != other.shape)
      result.kind = DifferenceKind::kShape;
    else if (!same_type)
      result.kind = DifferenceKind::kDType;
    if (result.kind == DifferenceKind::kShape || (!same_type && !floats)) {
      report_.differences.push_back(std::move(result));
    } else {
      pairs_.push_back({&a, &b, i, found->second, std::move(result)});
    }
    arrays.erase(found);
  }

  void add_value(const OpenedPrefix& a, const OpenedPrefix& b,
                 const std::pair<std::string, const Value*>& leaf, Arrays& arrays, Values& values) {
    const auto& [key, value] = leaf;
    if (const auto array = arrays.find(key); array != arrays.end()) {
      ++report_.compared;
      report_.differences.push_back({DifferenceKind::kKind,
                                     a.name,
                                     key,
                                     value_to_text(*value),
                                     describe(b.manifest.arrays[array->second].stored),
                                     0,
                                     0,
                                     {},
                                     {}});
      arrays.erase(array);
      return;
    }
    const auto found = values.find(key);
    if (found == values.end())
      return only(DifferenceKind::kOnlyInFirst, a, key, value_to_text(*value));
    ++report_.compared;
    if (same_value(*value, *found->second)) {
      ++report_.equal;
    } else {
      report_.differences.push_back({DifferenceKind::kValue,
                                     a.name,
                                     key,
                                     value_to_text(*value),
                                     value_to_text(*found->second),
                                     0,
                                     0,
                                     {},
                                     {}});
    }
    values.erase(found);
  }

  static void merge(const Found& found, LeafDifference& result) {
    result.different += found.different;
    if (found.absolute) raise(result.max_absolute, *found.absolute);
    if (found.relative) raise(result.max_relative, *found.relative);
  }

  void finish(LeafDifference& result) {
    if (result.different == 0 && result.kind == DifferenceKind::kElements) {
      ++report_.equal;
    } else {
      report_.differences.push_back(std::move(result));
    }
  }

  const DiffOptions& options_;
  Runtime& runtime_;
  std::vector<Pair> pairs_;
  DiffReport report_;
};

void add_only(Differ& differ, DifferenceKind kind, const OpenedPrefix& prefix) {
  for (const ManifestArray& array : prefix.manifest.arrays) {
    differ.only(kind, prefix, array.path.text(), describe(array.stored));
  }
  for (const auto& [path, value] : prefix.values)
    differ.only(kind, prefix, path.text(), value_to_text(value));
}

Result<DiffReport> diff_once(const Checkpoint& first, const Checkpoint& second,
                             const DiffOptions& options, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto left, select_prefixes(first, options.prefix));
  CAIRN_TRY_ASSIGN(auto right, select_prefixes(second, options.prefix));
  Differ differ(options, runtime);
  if (left.size() == 1 && right.size() == 1) {
    differ.add(*left[0], *right[0]);
    return differ.run();
  }
  for (const OpenedPrefix* a : left) {
    const auto found = std::ranges::find(right, a->name, &OpenedPrefix::name);
    if (found == right.end()) {
      add_only(differ, DifferenceKind::kOnlyInFirst, *a);
    } else {
      differ.add(*a, **found);
      right.erase(found);
    }
  }
  for (const OpenedPrefix* b : right) add_only(differ, DifferenceKind::kOnlyInSecond, *b);
  return differ.run();
}

}  // namespace

std::string_view difference_name(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kOnlyInFirst:
      return "only_in_first";
    case DifferenceKind::kOnlyInSecond:
      return "only_in_second";
    case DifferenceKind::kKind:
      return "kind";
    case DifferenceKind::kShape:
      return "shape";
    case DifferenceKind::kDType:
      return "dtype";
    case DifferenceKind::kValue:
      return "value";
    case DifferenceKind::kElements:
      return "elements";
    case DifferenceKind::kStructure:
      return "structure";
  }
  return "elements";
}

Result<DiffReport> diff(const Checkpoint& first, const Checkpoint& second,
                        const DiffOptions& options, Runtime& runtime) {
  return read_settled(first, runtime, [&](const Checkpoint& a) {
    return read_settled(second, runtime,
                        [&](const Checkpoint& b) { return diff_once(a, b, options, runtime); });
  });
}

}  // namespace cairn
