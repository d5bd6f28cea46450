// SPDX-License-Identifier: Apache-2.0
#include "cairn/array/shape.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cairn/base/checked.h"

namespace cairn {
namespace {

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

Error slice_error(const char* reason, std::string_view part, std::string_view what) {
  return Error(Code::kInvalidArgument, reason,
               fmt::format("slice '{}' {}; write it as begin:end or one index for each dimension",
                           part, what));
}

// One bound, counted from the end if negative. `size` itself is allowed: it is the end.
Result<Index> parse_bound(std::string_view part, std::string_view text, Index size) {
  Index value = 0;
  const char* last = text.data() + text.size();
  const auto [end, status] = std::from_chars(text.data(), last, value);
  if (status == std::errc::invalid_argument || end != last) {
    return slice_error("slice/syntax", part, fmt::format("has no number at '{}'", text));
  }
  if (status == std::errc::result_out_of_range || value > size || value < -size) {
    return slice_error("slice/range", part, fmt::format("leaves a dimension of size {}", size));
  }
  return value < 0 ? value + size : value;
}

struct Range {
  Index begin;
  Index end;
};

Result<Range> parse_range(std::string_view part, Index size) {
  const std::size_t colon = part.find(':');
  if (colon == std::string_view::npos) {
    CAIRN_TRY_ASSIGN(const Index index, parse_bound(part, part, size));
    if (index == size) {
      return slice_error("slice/range", part, fmt::format("leaves a dimension of size {}", size));
    }
    return Range{index, index + 1};
  }
  const std::string_view low = trim(part.substr(0, colon));
  const std::string_view high = trim(part.substr(colon + 1));
  Range range{0, size};
  if (!low.empty()) {
    CAIRN_TRY_ASSIGN(range.begin, parse_bound(part, low, size));
  }
  if (!high.empty()) {
    CAIRN_TRY_ASSIGN(range.end, parse_bound(part, high, size));
  }
  if (range.begin > range.end) return slice_error("slice/range", part, "ends before it begins");
  return range;
}

}  // namespace

Result<std::uint64_t> element_count(const Shape& shape) {
  const auto refuse = [&](const char* reason, std::string_view what) {
    return Error(Code::kInvalidArgument, reason,
                 fmt::format("shape {} {}", to_string(shape), what));
  };
  if (shape.size() > kMaxRank) {
    return Error(Code::kInvalidArgument, "shape/rank",
                 fmt::format("{} dimensions; at most {} are supported", shape.size(), kMaxRank));
  }
  // Zeros are left out of the product, so that strides of an empty array cannot overflow either.
  std::optional<Index> product = 1;
  bool empty = false;
  for (const Index size : shape) {
    if (size < 0) return refuse("shape/negative", "has a negative dimension");
    empty = empty || size == 0;
    if (size > 0 && product) product = checked_mul(*product, size);
  }
  if (!product) return refuse("shape/overflow", "has more elements than can be counted");
  return empty ? 0 : static_cast<std::uint64_t>(*product);
}

std::string to_string(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

Box Box::whole(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

Shape Box::shape() const {
  Shape sizes(rank());
  for (std::size_t i = 0; i < rank(); ++i) sizes[i] = std::max<Index>(end[i] - begin[i], 0);
  return sizes;
}

bool Box::empty() const {
  for (std::size_t i = 0; i < rank(); ++i) {
    if (begin[i] >= end[i]) return true;
  }
  return false;
}

std::uint64_t Box::elements() const {
  if (empty()) return 0;
  std::uint64_t product = 1;
  for (std::size_t i = 0; i < rank(); ++i) product *= static_cast<std::uint64_t>(end[i] - begin[i]);
  return product;
}

bool Box::contains(const Box& other) const {
  if (rank() != other.rank()) return false;
  if (other.empty()) return true;
  for (std::size_t i = 0; i < rank(); ++i) {
    if (other.begin[i] < begin[i] || other.end[i] > end[i]) return false;
  }
  return true;
}

Box Box::intersect(const Box& other) const {
  Box common = *this;
  for (std::size_t i = 0; i < rank(); ++i) {
    common.begin[i] = std::max(begin[i], other.begin[i]);
    common.end[i] = std::max(common.begin[i], std::min(end[i], other.end[i]));
  }
  return common;
}

Box Box::moved_by(const Shape& origin) const {
  Box moved = *this;
  for (std::size_t i = 0; i < rank(); ++i) {
    moved.begin[i] += origin[i];
    moved.end[i] += origin[i];
  }
  return moved;
}

Box Box::relative_to(const Shape& origin) const {
  Box moved = *this;
  for (std::size_t i = 0; i < rank(); ++i) {
    moved.begin[i] -= origin[i];
    moved.end[i] -= origin[i];
  }
  return moved;
}

std::string Box::to_string() const {
  std::string text = "[";
  for (std::size_t i = 0; i < rank(); ++i) {
    fmt::format_to(std::back_inserter(text), "{}{}:{}", i == 0 ? "" : ", ", begin[i], end[i]);
  }
  return text + "]";
}

Result<Box> parse_slice(std::string_view text, const Shape& shape) {
  Box box = Box::whole(shape);
  std::string_view rest = trim(text);
  for (std::size_t dim = 0; !rest.empty(); ++dim) {
    if (dim == shape.size()) {
      return slice_error("slice/rank", text,
                         fmt::format("has more dimensions than shape {}", cairn::to_string(shape)));
    }
    const std::size_t comma = rest.find(',');
    const std::string_view part = trim(rest.substr(0, comma));
    const bool last = comma == std::string_view::npos;
    rest = last ? std::string_view() : rest.substr(comma + 1);
    if (part.empty() || (!last && trim(rest).empty())) {
      return slice_error("slice/syntax", text, "has an empty dimension");
    }
    CAIRN_TRY_ASSIGN(const Range range, parse_range(part, shape[dim]));
    box.begin[dim] = range.begin;
    box.end[dim] = range.end;
  }
  return box;
}

}  // namespace cairn
