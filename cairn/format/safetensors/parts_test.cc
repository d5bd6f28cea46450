// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/parts.h"

#include <charconv>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace cairn::format::safetensors {
namespace {

// "a.w:3 b:1": names with sizes.
std::vector<NamedSize> parse_sizes(std::string_view text) {
  std::vector<NamedSize> sizes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t colon = item.rfind(':');
    NamedSize& size = sizes.emplace_back(item.substr(0, colon), 0);
    std::from_chars(item.data() + colon + 1, item.data() + item.size(), size.bytes);
  }
  return sizes;
}

// "a.w b|c": one group, then another.
std::string show(const PartGroups& groups, const std::vector<NamedSize>& sizes) {
  std::string text;
  for (const auto& group : groups) {
    if (&group != &groups.front()) text += '|';
    for (const std::size_t i : group) {
      if (i != group.front()) text += ' ';
      text += sizes[i].name;
    }
  }
  return text;
}

struct Case {
  std::string_view sizes;
  std::uint64_t max_bytes;
  std::string_view greedy;
  std::string_view optimized;
};

constexpr std::string_view kLayers =
    "layers.0.w:6 layers.0.b:1 layers.1.w:6 layers.1.b:1 embed.w:9 norm:1 head.w:2 head.b:1";

// The groups are what eformer 0.0.101 makes of the same sizes.
constexpr Case kCases[] = {
    {"", 10, "", ""},
    {"a:1", 10, "a", "a"},
    {"a:11", 10, "a", "a"},
    {"a:0 b:0", 0, "a b", "a b"},
    {"a:1 b:1", 0, "a|b", "a|b"},
    {"a:0 b:5 c:0", 4, "a|b|c", "a|b|c"},
    {"a:4 b:4 c:4", 8, "a b|c", "a b|c"},
    {"a:5 b:4 c:4 d:1", 8, "a|b c|d", "a|b c|d"},
    {"a:20 b:1 c:20 d:1", 10, "a|b|c|d", "a|b|c|d"},
    {"b.w:3 a.w:3 b.b:1 a.b:1", 8, "b.w a.w b.b a.b", "a.w a.b b.w b.b"},
    {"b.w:3 a.w:3 b.b:1 a.b:1", 4, "b.w|a.w b.b|a.b", "a.w a.b|b.w b.b"},
    {"b.w:3 a.w:3 b.b:1 a.b:1", 3, "b.w|a.w|b.b a.b", "a.w|a.b|b.w|b.b"},
    {"x:2 root.y:2 a.z:2 root:1", 4, "x root.y|a.z root", "a.z|x root.y|root"},
    {"x:2 root.y:2 a.z:2 root:1", 7, "x root.y a.z root", "a.z x root.y root"},
    {kLayers, 10, "layers.0.w layers.0.b|layers.1.w layers.1.b|embed.w norm|head.w head.b",
     "embed.w|head.w head.b layers.0.w layers.0.b|layers.1.w layers.1.b norm"},
    {kLayers, 5, "layers.0.w|layers.0.b|layers.1.w|layers.1.b|embed.w|norm head.w head.b",
     "embed.w|head.w head.b|layers.0.w|layers.0.b|layers.1.w|layers.1.b norm"},
    {kLayers, 100, "layers.0.w layers.0.b layers.1.w layers.1.b embed.w norm head.w head.b",
     "embed.w head.w head.b layers.0.w layers.0.b layers.1.w layers.1.b norm"},
    {"a.:3 .a:3 ..:2 .:1", 5, "a.|.a ..|.", ".a .|.. a."},
    {"big.0:9 big.1:9 big.2:1 small.0:1 small.1:1", 10, "big.0|big.1 big.2|small.0 small.1",
     "big.0|big.1 big.2|small.0 small.1"},
};

TEST(SafetensorsParts, GroupsAsTheReferenceDoes) {
  for (const Case& c : kCases) {
    const auto sizes = parse_sizes(c.sizes);
    EXPECT_EQ(show(group_keys_by_shard_size(sizes, c.max_bytes), sizes), c.greedy)
        << c.sizes << " at most " << c.max_bytes;
    EXPECT_EQ(show(optimize_shard_layout(sizes, c.max_bytes), sizes), c.optimized)
        << c.sizes << " at most " << c.max_bytes;
  }
}

TEST(SafetensorsParts, SumsThatDoNotFitOpenANewPart) {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::vector<NamedSize> sizes = {{"a.x", most}, {"a.y", 2}, {"a.z", most}};
  EXPECT_EQ(show(group_keys_by_shard_size(sizes, 10), sizes), "a.x|a.y|a.z");
  EXPECT_EQ(show(optimize_shard_layout(sizes, 10), sizes), "a.x|a.y|a.z");
}

}  // namespace
}  // namespace cairn::format::safetensors
