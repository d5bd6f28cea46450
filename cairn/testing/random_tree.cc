// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/random_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace cairn::testing {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kOddTexts = {
    ""sv,
    "."sv,
    ".."sv,
    "a.b"sv,
    "a/b"sv,
    "/"sv,
    "%"sv,
    "%2E"sv,
    "%%"sv,
    " "sv,
    "a b"sv,
    "\n"sv,
    "\0"sv,
    "\x7f"sv,
    "0"sv,
    "00"sv,
    "-1"sv,
    "+1"sv,
    "con"sv,
    "\\"sv,
    "\xc3\xa9"sv,
    "e\xcc\x81"sv,
    "\xf0\x9f\x98\x80"sv,
    "\""sv,
    "'"sv,
    ".zarray"sv,
    ".cairn.json"sv,
    "array"sv,
    "value"sv,
    "__metadata__"sv,
};
constexpr std::array<std::int64_t, 8> kOddNumbers = {0, 1, 2, 10, -1, -10, INT64_MIN, INT64_MAX};

template <typename List>
auto pick(Random& random, const List& list) {
  return list[below(random, list.size())];
}

void append_code_point(std::string& text, std::uint32_t code) {
  const auto byte = [&text](std::uint32_t bits) { text += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xe0 | code >> 12);
    } else {
      byte(0xf0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3f));
    }
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

double random_double(Random& random) {
  constexpr std::array<std::uint64_t, 10> kBits = {0,
                                                   0x8000000000000000,
                                                   0x3ff0000000000000,
                                                   0x7ff0000000000000,
                                                   0xfff0000000000000,
                                                   0x7ff8000000000000,
                                                   0x7ff8000000000001,
                                                   0xfff4000000000002,
                                                   0x0000000000000001,
                                                   0x7fefffffffffffff};
  return std::bit_cast<double>(below(random, 2) == 0 ? pick(random, kBits) : random());
}

Integer random_integer(Random& random) {
  if (below(random, 2) == 0) return static_cast<std::int64_t>(random() >> below(random, 64));
  std::string digits = below(random, 2) == 0 ? "-" : "";
  digits += static_cast<char>('1' + below(random, 9));
  for (std::uint64_t n = below(random, 60); n > 0; --n) {
    digits += static_cast<char>('0' + below(random, 10));
  }
  return *Integer::parse(digits);
}

class Grower {
 public:
  Grower(std::uint64_t seed, const RandomTreeOptions& options) : random_(seed), options_(options) {}

  Tree grow(int depth) {
    const bool leaf = depth == options_.max_depth || below(random_, depth == 0 ? 20 : 3) == 0;
    return leaf ? grow_leaf() : grow_container(depth);
  }

 private:
  Tree grow_leaf() {
    if (options_.values && below(random_, 3) == 0) return Tree(random_value(random_));
    const DType dtype =
        options_.dtypes.empty() ? pick(random_, all_dtypes()) : pick(random_, options_.dtypes);
    return Tree(random_array(random_, dtype, random_shape(random_, options_)));
  }

  Tree grow_container(int depth) {
    constexpr std::array kKinds = {TreeKind::kDict,       TreeKind::kDict,       TreeKind::kList,
                                   TreeKind::kTuple,      TreeKind::kNamedTuple, TreeKind::kNone,
                                   TreeKind::kAttributes, TreeKind::kCustom};
    const TreeKind kind = pick(random_, kKinds);
    const bool classed =
        kind == TreeKind::kNamedTuple || kind == TreeKind::kAttributes || kind == TreeKind::kCustom;
    const std::string class_name = classed && below(random_, 4) != 0 ? "optax:ScaleByAdam" : "";
    Tree::Children children;
    std::set<std::string> parts;
    const std::size_t count =
        kind == TreeKind::kNone ? 0 : below(random_, options_.max_children + 1);
    while (children.size() < count) {
      Key key = grow_key(kind == TreeKind::kDict || kind == TreeKind::kCustom);
      if (parts.insert(key.part()).second) children.emplace_back(std::move(key), grow(depth + 1));
    }
    const std::string statics = !class_name.empty() && count % 2 == 1 ? R"({"rate":0.1})" : "";
    return Tree::node(kind, std::move(children), class_name, statics);
  }

  Key grow_key(bool numbers) {
    const std::uint64_t choice = options_.odd_keys ? below(random_, 6) : 5;
    if (choice == 0) return Key(pick(random_, kOddTexts));
    if (choice == 1) return Key(random_text(random_, 12));
    if (choice == 2 && numbers) return Key(pick(random_, kOddNumbers));
    constexpr std::array kNames = {"kernel"sv, "bias"sv, "mu"sv, "nu"sv, "layers"sv, "count"sv};
    return Key(std::string(pick(random_, kNames)) + std::to_string(below(random_, 100)));
  }

  Random random_;
  const RandomTreeOptions& options_;
};

std::string array_difference(const ShardedArray& a, const ShardedArray& b) {
  if (a.dtype() != b.dtype()) return "dtypes differ";
  if (a.shape() != b.shape()) return "shapes differ";
  if (a.sharding() != b.sharding() || a.shards().size() != b.shards().size()) {
    return "shardings differ";
  }
  for (std::size_t i = 0; i < a.shards().size(); ++i) {
    const auto [x, y] = std::pair(a.shards()[i].data.bytes(), b.shards()[i].data.bytes());
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) return "elements differ";
  }
  return "";
}

std::string leaf_difference(const Leaf& a, const Leaf& b) {
  if (a.index() != b.index()) return "one is an array, the other is not";
  if (const auto* array = std::get_if<ShardedArray>(&a)) {
    return array_difference(*array, std::get<ShardedArray>(b));
  }
  const auto& [x, y] = std::pair(std::get<Value>(a), std::get<Value>(b));
  if (same_value(x, y)) return "";
  return value_to_text(x) + " is not " + value_to_text(y);
}

// Compares by hand, so that it can judge flatten() and the structure.
std::vector<const Tree::Child*> children_of(const Tree& node) {
  std::vector<const Tree::Child*> children;
  for (const Tree::Child& child : node.children()) children.push_back(&child);
  if (node.kind() == TreeKind::kDict) {
    std::sort(children.begin(), children.end(),
              [](const auto* x, const auto* y) { return x->first < y->first; });
  }
  return children;
}

std::string difference_below(const Tree& a, const Tree& b, const std::string& place) {
  if (a.kind() != b.kind()) return place + ": kinds differ";
  if (a.class_name() != b.class_name()) return place + ": classes differ";
  if (a.statics() != b.statics()) return place + ": static parts differ";
  if (a.is_leaf()) {
    const std::string text = leaf_difference(a.leaf(), b.leaf());
    return text.empty() ? "" : place + ": " + text;
  }
  const auto x = children_of(a);
  const auto y = children_of(b);
  if (x.size() != y.size()) return place + ": numbers of children differ";
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::string below = place + "[" + x[i]->first.part() + "]";
    if (x[i]->first != y[i]->first) return below + " is not " + y[i]->first.part();
    std::string text = difference_below(x[i]->second, y[i]->second, below);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace

std::uint64_t below(Random& random, std::uint64_t n) { return random() % n; }

Tree random_tree(std::uint64_t seed, const RandomTreeOptions& options) {
  return Grower(seed, options).grow(0);
}

Array random_array(Random& random, DType dtype, const Shape& shape) {
  auto array = Array::allocate(dtype, shape);
  EXPECT_TRUE(array) << array.error().to_string();
  const auto mask = static_cast<unsigned>((1U << std::min(bit_width(dtype), 8)) - 1);
  const MutableByteSpan bytes = array->mutable_bytes();
  const std::size_t size = item_size(dtype);
  for (std::size_t i = 0; i < bytes.size(); i += size) {
    const bool all_ones = below(random, 8) == 0;  // a NaN in most types
    for (std::size_t j = i; j < i + size; ++j) {
      const std::uint64_t bits = all_ones ? 0xff : random();
      bytes[j] = static_cast<std::byte>(bits & (dtype == DType::kBool ? 1U : mask));
    }
  }
  return *std::move(array);
}

Box random_box(Random& random, const Shape& shape) {
  Box box = Box::whole(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto size = static_cast<std::uint64_t>(shape[d]);
    const std::uint64_t begin = below(random, size);
    box.begin[d] = static_cast<Index>(begin);
    box.end[d] = static_cast<Index>(begin + 1 + below(random, size - begin));
  }
  return box;
}

Shape random_shape(Random& random, const RandomTreeOptions& options) {
  Shape shape(below(random, options.max_rank + 1));
  std::uint64_t left = options.max_elements;
  for (Index& size : shape) {
    const bool empty = below(random, 20) == 0;
    size = empty ? 0 : static_cast<Index>(1 + below(random, std::min<std::uint64_t>(left, 7)));
    left /= static_cast<std::uint64_t>(std::max<Index>(size, 1));
  }
  return shape;
}

Value random_value(Random& random) {
  switch (below(random, std::variant_size_v<Value>)) {
    case 0:
      return {};
    case 1:
      return below(random, 2) == 0;
    case 2:
      return random_integer(random);
    case 3:
      return random_double(random);
    case 4:
      return std::complex<double>(random_double(random), random_double(random));
    case 5:
      return random_text(random, 40);
    default:
      return Bytes{random_bytes(random, 40)};
  }
}

std::string random_text(Random& random, std::size_t max_code_points) {
  constexpr std::array<std::uint32_t, 4> kLimits = {0x80, 0x800, 0x10000, 0x110000};
  std::string text;
  for (std::uint64_t n = below(random, max_code_points + 1); n > 0; --n) {
    const auto code = static_cast<std::uint32_t>(below(random, pick(random, kLimits)));
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    append_code_point(text, surrogate ? code - 0xd800 : code);
  }
  return text;
}

std::string random_bytes(Random& random, std::size_t max_size) {
  std::string bytes(below(random, max_size + 1), '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string difference(const Tree& a, const Tree& b) { return difference_below(a, b, "root"); }

}  // namespace cairn::testing
