// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/key_path.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "cairn/testing/random_tree.h"
#include "cairn/testing/scarce_memory.h"
#include "cairn/tree/key_depth.h"

namespace cairn {
namespace {

using testing::below;

KeyPath path_of(std::vector<std::string> parts) { return KeyPath(std::move(parts)); }

TEST(Key, OrdersNumbersBySizeBeforeTextsByBytes) {
  const std::vector<Key> ascending = {INT64_MIN, -1,   0,   2,   10,  "",
                                      "-",       "10", "2", "B", "a", "\xc3\xa9"};
  for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
    EXPECT_LT(ascending[i], ascending[i + 1]) << i;
  }
}

TEST(Key, ThatCannotBeCopiedForLackOfMemoryHarmsNothing) {
  const Key key("a text that is too long to lie in place");
  const auto failures = testing::fail_each_allocation([&] {
    const Key copy = key;
    Key other(1);
    other = copy;
  });
  EXPECT_EQ(failures, 2U);
}

TEST(Key, FindsTheOnlyTwoWaysToCollide) {
  const auto collide = [](const std::vector<Key>& keys) {
    std::vector<const Key*> pointers;
    for (const Key& key : keys) pointers.push_back(&key);
    return find_collision(pointers);
  };
  EXPECT_EQ(collide({"0", "a", 1, 0}), (std::pair<Key, Key>(0, "0")));
  EXPECT_EQ(collide({"b", "a", "b"}), (std::pair<Key, Key>("b", "b")));
  EXPECT_EQ(collide({-1, 3, -1}), (std::pair<Key, Key>(-1, -1)));
  EXPECT_EQ(collide({INT64_MIN, "-9223372036854775808"}),
            (std::pair<Key, Key>(INT64_MIN, "-9223372036854775808")));
  EXPECT_EQ(collide({0, "00", "+0", "-0", " 0", "", 1, "2"}), std::nullopt);
  EXPECT_EQ(collide({}), std::nullopt);
}

TEST(KeyPath, OfTooManyPartsIsRefusedWithAShortMessage) {
  const auto name = [](std::size_t parts, char separator) {
    std::string text = "k";
    for (std::size_t i = 1; i < parts; ++i) text += std::string(1, separator) + "k";
    return text;
  };
  EXPECT_TRUE(KeyPath::parse(name(kMaxKeyParts, '.')));
  EXPECT_TRUE(KeyPath::parse_directory(name(kMaxKeyParts, '/')));
  for (const auto& path : {KeyPath::parse(name(kMaxKeyParts + 1, '.')),
                           KeyPath::parse_directory(name(100'000, '/'))}) {
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().reason(), "keypath/too-deep");
    EXPECT_LT(path.error().to_string().size(), 400U);
  }
}

TEST(KeyPath, ShortensNamesBetweenCharacters) {
  EXPECT_EQ(shortened_name("short"), "short");
  EXPECT_EQ(shortened_name(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shortened_name(std::string(199, 'x') + "\xc3\xa9y"), std::string(199, 'x') + "...");
}

TEST(KeyPath, KeepsThePlainNamesOfTheReference) {
  const KeyPath path = path_of({"params", "layers", "0", "kernel_1-b"});
  EXPECT_EQ(path.text(), "params.layers.0.kernel_1-b");
  EXPECT_EQ(path.directory(), "params/layers/0/kernel_1-b");
  EXPECT_EQ(KeyPath().text(), "");
  EXPECT_EQ(KeyPath().directory(), "");
}

TEST(KeyPath, EncodesWhatWouldChangeItsMeaning) {
  const struct {
    std::vector<std::string> parts;
    std::string text;
  } cases[] = {
      {{""}, "%"},
      {{"", ""}, "%.%"},
      {{"%"}, "%25"},
      {{"."}, "%2E"},
      {{"..", "a"}, "%2E%2E.a"},
      {{"a.b", "c"}, "a%2Eb.c"},
      {{"a/b"}, "a%2Fb"},
      {{"a\n", std::string("\0", 1), "\x7f"}, "a%0A.%00.%7F"},
      {{"a b", "\xc3\xa9", "[0]"}, "a b.\xc3\xa9.[0]"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(path_of(c.parts).text(), c.text);
    const auto back = KeyPath::parse(c.text);
    ASSERT_TRUE(back) << c.text;
    EXPECT_EQ(back->parts(), c.parts) << c.text;
  }
}

TEST(KeyPath, RefusesTextThatNamesNoLeaf) {
  const struct {
    std::string text, reason;
  } cases[] = {
      {".", "keypath/empty-part"},    {"a.", "keypath/empty-part"}, {".a", "keypath/empty-part"},
      {"a..b", "keypath/empty-part"}, {"a/b", "keypath/slash"},     {"/", "keypath/slash"},
      {"a.%4", "percent/invalid"},    {"%zz", "percent/invalid"},   {"a%", "percent/invalid"},
  };
  for (const auto& c : cases) {
    const auto path = KeyPath::parse(c.text);
    ASSERT_FALSE(path) << c.text;
    EXPECT_EQ(path.error().reason(), c.reason) << c.text;
    EXPECT_EQ(path.error().code(), Code::kInvalidArgument) << c.text;
  }
}

TEST(KeyPath, ReadsDirectoriesThatOthersMadeButNeverLeavesThem) {
  EXPECT_EQ(KeyPath::parse_directory("a/b.c/0")->parts(),
            (std::vector<std::string>{"a", "b.c", "0"}));
  const struct {
    std::string directory, reason;
  } cases[] = {
      {"/a", "keypath/empty-part"},
      {"a/", "keypath/empty-part"},
      {"a//b", "keypath/empty-part"},
      {"..", "keypath/dot-part"},
      {"a/./b", "keypath/dot-part"},
      {"a/..", "keypath/dot-part"},
      {"a/%", ""},
      {"a/b%", "percent/invalid"},
  };
  for (const auto& c : cases) {
    const auto path = KeyPath::parse_directory(c.directory);
    EXPECT_EQ(path ? "" : path.error().reason(), c.reason) << c.directory;
  }
}

TEST(KeyPath, TextAndDirectoryAreOneToOneWithAnyBytes) {
  testing::Random random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> parts(below(random, 5));
    for (std::string& part : parts) {
      part = testing::random_bytes(random, below(random, 2) == 0 ? 2 : 12);
    }
    const KeyPath path(parts);
    const auto from_text = KeyPath::parse(path.text());
    const auto from_directory = KeyPath::parse_directory(path.directory());
    ASSERT_TRUE(from_text && from_directory) << path.text();
    ASSERT_EQ(*from_text, path);
    ASSERT_EQ(*from_directory, path);
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    const std::string directory = path.directory();
    ASSERT_FALSE(std::any_of(directory.begin(), directory.end(), control));
    ASSERT_EQ(std::count(directory.begin(), directory.end(), '/') + 1,
              static_cast<std::ptrdiff_t>(std::max<std::size_t>(parts.size(), 1)));
  }
}

TEST(KeyPath, RefusesPartsThatNoFileSystemHolds) {
  const auto reason = [](std::string part) -> std::string {
    const auto checked = path_of({"a", std::move(part)}).check();
    return std::string(checked ? "" : checked.error().reason());
  };
  EXPECT_EQ(reason(std::string(255, 'x')), "");
  EXPECT_EQ(reason(std::string(256, 'x')), "keypath/part-too-long");
  EXPECT_EQ(reason(std::string(85, '.')), "");
  EXPECT_EQ(reason(std::string(86, '.')), "keypath/part-too-long");
}

TEST(KeyPath, MakesChildren) { EXPECT_EQ(KeyPath().child("a").child(""), path_of({"a", ""})); }

}  // namespace
}  // namespace cairn
