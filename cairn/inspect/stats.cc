// SPDX-License-Identifier: Apache-2.0
#include "cairn/inspect/stats.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <utility>

#include "cairn/array/cast.h"
#include "cairn/inspect/fold_pieces.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"

namespace cairn {

namespace {

/// Counts and moments of some elements; sums of parts are merged by the rule for variances, so that
/// no precision is lost to large means.
struct Moments {
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::uint64_t zeros = 0;
  std::uint64_t finite = 0;
  double min = 0;
  double max = 0;
  double mean = 0;
  double squares = 0;  // of the deviations from the mean

  void add(double value) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++inf;
    } else {
      if (value == 0) ++zeros;
      min = finite == 0 ? value : std::min(min, value);
      max = finite == 0 ? value : std::max(max, value);
      ++finite;
      const double off = value - mean;
      mean += off / static_cast<double>(finite);
      squares += off * (value - mean);
    }
  }

  void merge(const Moments& other) {
    nan += other.nan;
    inf += other.inf;
    zeros += other.zeros;
    if (other.finite == 0) return;
    min = finite == 0 ? other.min : std::min(min, other.min);
    max = finite == 0 ? other.max : std::max(max, other.max);
    const double off = other.mean - mean;
    const auto a = static_cast<double>(finite);
    const auto b = static_cast<double>(other.finite);
    squares += other.squares + off * off * a * b / (a + b);
    mean += off * b / (a + b);
    finite += other.finite;
  }
};

double number_of(DType dtype, const std::byte* element) {
  if (dtype_kind(dtype) != DTypeKind::kComplex) return element_as_double(dtype, element);
  if (dtype == DType::kComplex64) {
    std::complex<float> value;
    std::memcpy(&value, element, sizeof(value));
    return std::abs(std::complex<double>(value));
  }
  std::complex<double> value;
  std::memcpy(&value, element, sizeof(value));
  return std::abs(value);
}

// Types with few bits are widened first: one pass of the cast is faster than one call an element.
Result<Moments> moments_of(const Array& piece) {
  Moments moments;
  const DType dtype = piece.dtype();
  const std::uint64_t elements = piece.elements();
  if (can_cast(dtype, DType::kFloat64) && dtype_kind(dtype) == DTypeKind::kFloat) {
    CAIRN_TRY_ASSIGN(const Array wide, cast_array(piece, DType::kFloat64));
    const auto* values = reinterpret_cast<const double*>(wide.data());
    for (std::uint64_t i = 0; i < elements; ++i) moments.add(values[i]);
    return moments;
  }
  const std::size_t item = item_size(dtype);
  for (std::uint64_t i = 0; i < elements; ++i)
    moments.add(number_of(dtype, piece.data() + i * item));
  return moments;
}

struct Selected {
  const OpenedPrefix* prefix = nullptr;
  std::size_t array = 0;
};

ArrayStats named(const OpenedPrefix& prefix, const ManifestArray& array) {
  ArrayStats stats;
  stats.prefix = prefix.name;
  stats.key = array.path.text();
  stats.dtype = array.stored.dtype;
  stats.shape = array.stored.shape;
  stats.elements = Box::whole(array.stored.shape).elements();
  return stats;
}

void fill_in(const Moments& moments, ArrayStats& stats) {
  stats.nan = moments.nan;
  stats.inf = moments.inf;
  stats.zeros = moments.zeros;
  if (moments.finite == 0) return;
  stats.min = moments.min;
  stats.max = moments.max;
  stats.mean = moments.mean;
  stats.std = std::sqrt(moments.squares / static_cast<double>(moments.finite));
}

Result<std::vector<ArrayStats>> stats_once(const Checkpoint& checkpoint,
                                           const StatsOptions& options, Runtime& runtime) {
  std::vector<ArrayStats> results;
  std::vector<Selected> selected;
  std::vector<const format::StoredArray*> arrays;
  std::uint64_t total = 0;
  CAIRN_TRY_ASSIGN(const auto prefixes, select_prefixes(checkpoint, options.prefix));
  for (const OpenedPrefix* prefix : prefixes) {
    for (std::size_t i = 0; i < prefix->manifest.arrays.size(); ++i) {
      const ManifestArray& array = prefix->manifest.arrays[i];
      if (!is_selected(array.path, options.keys)) continue;
      results.push_back(named(*prefix, array));
      selected.push_back({prefix, i});
      arrays.push_back(&array.stored);
      total += results.back().elements * item_size(array.stored.dtype);
    }
  }
  std::vector<Moments> merged(results.size());
  Progress progress(options.progress, total);
  const auto read = [&](std::size_t n, const Box& box) -> Result<Moments> {
    CAIRN_TRY_ASSIGN(const Array piece,
                     load_box(*selected[n].prefix, selected[n].array, box, runtime));
    progress.add(piece.nbytes());
    return moments_of(piece);
  };
  CAIRN_TRY(fold_pieces(arrays, runtime, read,
                        [&](std::size_t n, const Moments& found) { merged[n].merge(found); }));
  for (std::size_t i = 0; i < results.size(); ++i) fill_in(merged[i], results[i]);
  return results;
}

}  // namespace

Result<std::vector<ArrayStats>> stats(const Checkpoint& checkpoint, const StatsOptions& options,
                                      Runtime& runtime) {
  return read_settled(checkpoint, runtime, [&](const Checkpoint& opened) {
    return stats_once(opened, options, runtime);
  });
}

}  // namespace cairn
