// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/pickle.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "cairn/base/bytes.h"

namespace cairn {
namespace {

using namespace std::string_literals;

std::string reason_of(const std::string& bytes) {
  const auto parsed = Pickle::parse(bytes);
  return parsed ? "" : std::string(parsed.error().reason());
}

template <typename T>
T root_of(const std::string& bytes) {
  const auto parsed = Pickle::parse(bytes);
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return std::get<T>(parsed->root());
}

TEST(Pickle, ReadsPlainValues) {
  EXPECT_NO_THROW(root_of<Pickle::None>("\x80\x02N."));
  EXPECT_TRUE(root_of<bool>("\x88."));
  EXPECT_FALSE(root_of<bool>("\x89."));
  EXPECT_EQ(root_of<double>("G\x3f\xf8\0\0\0\0\0\0."s), 1.5);
  EXPECT_EQ(root_of<std::string>("\x8c\x02hi."), "hi");
  EXPECT_EQ(root_of<std::string>("X\x02\0\0\0hi."s), "hi");
  EXPECT_EQ(root_of<Pickle::Bytes>("C\x02\xff\x00."s).data, "\xff\x00"s);
}

TEST(Pickle, ReadsIntegersOfAnySize) {
  const std::pair<std::string, const char*> kTable[] = {
      {"K\xff.", "255"},
      {"M\x00\x01."s, "256"},
      {"J\xff\xff\xff\xff.", "-1"},
      {"J\x00\x00\x00\x80."s, "-2147483648"},
      {"\x8a\x00."s, "0"},
      {"\x8a\x01\xff.", "-1"},
      {"\x8a\x02\xff\x00."s, "255"},
      {"\x8a\x01\x80.", "-128"},
      {"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80."s, "-9223372036854775808"},
      {"\x8a\x0d\x00\x00\x00\x40\xea\xed\x74\x46\xd0\x9c\x2c\x9f\x0c."s,
       "1000000000000000000000000000000"},
  };
  for (const auto& [bytes, digits] : kTable)
    EXPECT_EQ(root_of<Pickle::Integer>(bytes).digits, digits) << digits;
}

TEST(Pickle, ReadsContainersAndWhatIsShared) {
  // [(1, {"a": None}), the same tuple again]
  const auto made = Pickle::parse("\x80\x04](K\x01}\x8c\x01\x61Ns\x86\x94h\x00\x65."s);
  ASSERT_TRUE(made) << made.error().to_string();
  const auto& list = std::get<Pickle::List>(made->root());
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0], list.items[1]);
  const auto& pair = std::get<Pickle::Tuple>(made->at(list.items[0]));
  ASSERT_EQ(pair.items.size(), 2u);
  EXPECT_EQ(std::get<Pickle::Integer>(made->at(pair.items[0])).digits, "1");
  const auto& dict = std::get<Pickle::Dict>(made->at(pair.items[1]));
  ASSERT_EQ(dict.items.size(), 2u);
  EXPECT_EQ(std::get<std::string>(made->at(dict.items[0])), "a");
}

TEST(Pickle, LeavesNamesAndCallsAlone) {
  const auto called = Pickle::parse("cos\nsystem\n(\x8c\x02ls\x74RNb.");
  ASSERT_TRUE(called) << called.error().to_string();
  const auto& what = std::get<Pickle::Call>(called->root());
  EXPECT_EQ(std::get<Pickle::Name>(called->at(what.what)).text, "os:system");
  EXPECT_EQ(std::get<Pickle::Tuple>(called->at(what.arguments)).items.size(), 1u);
  const auto made_new = Pickle::parse("\x8c\x01m\x8c\x01n\x93)\x81.");
  ASSERT_TRUE(made_new);
  const auto& object = std::get<Pickle::Call>(made_new->root());
  EXPECT_EQ(std::get<Pickle::Name>(made_new->at(object.what)).text, "m:n");
}

TEST(Pickle, BearsCyclesAndWhatWouldGrow) {
  const auto cycle = Pickle::parse("]\x94h\x00\x61."s);
  ASSERT_TRUE(cycle) << cycle.error().to_string();
  const auto& list = std::get<Pickle::List>(cycle->root());
  EXPECT_EQ(&cycle->at(list.items.at(0)), &cycle->root());
  std::string doubled = ")\x94";
  for (int n = 0; n < 200; ++n) {
    const std::string again = "h"s + static_cast<char>(n);
    doubled += again + again + "\x86\x94";
  }
  EXPECT_TRUE(Pickle::parse(doubled + "."));
}

TEST(Pickle, RefusesDamageByName) {
  const std::pair<std::string, const char*> kTable[] = {
      {"", "pickle/damaged"},
      {"N", "pickle/damaged"},
      {".", "pickle/damaged"},
      {"(.", "pickle/damaged"},
      {"N(.", "pickle/damaged"},
      {"t.", "pickle/damaged"},
      {"N\x86.", "pickle/damaged"},
      {"NNs.", "pickle/damaged"},
      {"NN\x61.", "pickle/damaged"},
      {"}(Nu.", "pickle/damaged"},
      {"}(]Nu.", "pickle/unsupported"},
      {"h\x05.", "pickle/damaged"},
      {"\x94.", "pickle/damaged"},
      {"\x8c\x05hi.", "pickle/damaged"},
      {"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "pickle/damaged"},
      {"\x8c\x01\xff.", "pickle/unsupported"},
      {"\x8b\xff\xff\xff\x7f.", "pickle/unsupported"},
      {"NN\x93.", "pickle/damaged"},
      {"cos", "pickle/damaged"},
      {"NNb.", "pickle/damaged"},
      {"I1\n.", "pickle/unsupported"},
      {"P1\n.", "pickle/unsupported"},
  };
  for (const auto& [bytes, reason] : kTable) EXPECT_EQ(reason_of(bytes), reason) << bytes;
}

TEST(Pickle, LimitsItsItems) {
  std::string many(kMaxPickleItems, ')');
  EXPECT_EQ(reason_of(many + "."), "pickle/too-large");
  EXPECT_TRUE(Pickle::parse(std::string(kMaxPickleItems, 'N') + ".")) << "they are one item";
}

TEST(PickleWriter, IsReadAgain) {
  PickleWriter writer;
  writer.begin_list();
  writer.none();
  writer.boolean(true);
  writer.integer(-5);
  writer.integer(std::numeric_limits<std::int64_t>::min());
  writer.number(-0.0);
  writer.text("h\xc3\xa9");
  writer.bytes("\xff");
  writer.begin_dict();
  writer.text("k");
  writer.begin_tuple();
  writer.end_tuple();
  writer.end_dict();
  writer.begin_call("m", "f");
  writer.integer(1);
  writer.end_call();
  writer.end_list();
  const auto made = Pickle::parse(std::move(writer).finish());
  ASSERT_TRUE(made) << made.error().to_string();
  const auto& items = std::get<Pickle::List>(made->root()).items;
  ASSERT_EQ(items.size(), 9u);
  EXPECT_TRUE(std::get<bool>(made->at(items[1])));
  EXPECT_EQ(std::get<Pickle::Integer>(made->at(items[2])).digits, "-5");
  EXPECT_EQ(std::get<Pickle::Integer>(made->at(items[3])).digits, "-9223372036854775808");
  EXPECT_TRUE(std::signbit(std::get<double>(made->at(items[4]))));
  EXPECT_EQ(std::get<std::string>(made->at(items[5])), "h\xc3\xa9");
  EXPECT_EQ(std::get<Pickle::Bytes>(made->at(items[6])).data, "\xff");
  EXPECT_EQ(std::get<Pickle::Dict>(made->at(items[7])).items.size(), 2u);
  const auto& call = std::get<Pickle::Call>(made->at(items[8]));
  EXPECT_EQ(std::get<Pickle::Name>(made->at(call.what)).text, "m:f");
}

}  // namespace
}  // namespace cairn
