// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/wire.h"

#include <random>

#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn::coord {
namespace {

using cairn::testing::must;
using cairn::testing::reason;

std::string bytes_of(const Message& message) {
  return std::string(as_text(must(encode_message(message)).bytes()));
}

TEST(Wire, IsOneLineOfJsonAndThePayload) {
  const Message message{.call = 7,
                        .operation = Operation::kGather,
                        .phase = "save 100",
                        .payload = Buffer::own("hello")};
  EXPECT_EQ(bytes_of(message),
            R"({"call":7,"operation":"gather","phase":"save 100","outcome":"done","text":"",)"
            R"("payload":5})"
            "\nhello");
}

TEST(Wire, MessagesComeBackEqual) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const Message sent{.call = random(),
                       .operation = static_cast<Operation>(random() % 3),
                       .phase = "\"p\\\n" + std::to_string(random()),
                       .outcome = static_cast<CallStatus>(random() % 4),
                       .text = std::string(random() % 50, '\n'),
                       .payload = Buffer::own(std::string(random() % 100, '\n'))};
    const Message got = must(decode_message(must(encode_message(sent))));
    EXPECT_EQ(got.call, sent.call);
    EXPECT_EQ(got.operation, sent.operation);
    EXPECT_EQ(got.phase, sent.phase);
    EXPECT_EQ(got.outcome, sent.outcome);
    EXPECT_EQ(got.text, sent.text);
    EXPECT_EQ(as_text(got.payload.bytes()), as_text(sent.payload.bytes()));
    EXPECT_TRUE(got.payload.immutable());
  }
}

TEST(Wire, KeepsWhatTheChannelAdded) {
  const Buffer bytes = must(encode_message({}, {{"session", "abc"}}));
  const Header header = must(decode_header(as_text(bytes.bytes()), bytes.size()));
  EXPECT_EQ(*header.json.find("session"), Json("abc"));
}

TEST(Wire, RefusesEveryCutAndWhatIsNoMessage) {
  const std::string good = bytes_of({.phase = "p", .payload = Buffer::own("hello")});
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(reason(decode_message(Buffer::own(good.substr(0, size)))), "coord/bad-message");
  }
  EXPECT_EQ(reason(decode_message(Buffer::own(good + "!"))), "coord/bad-message");
  EXPECT_EQ(reason(decode_message(Buffer::own(std::string(kMaxHeader + 1, ' ') + good))),
            "coord/bad-message");
}

TEST(Wire, RefusesDamagedHeaders) {
  const std::string good = bytes_of({.phase = "p"});
  const std::vector<std::pair<std::string, std::string>> damages = {
      {R"("call":0)", R"("call":-1)"},
      {R"("call":0)", R"("call":"0")"},
      {R"("operation":"barrier")", R"("operation":"dance")"},
      {R"("operation":"barrier",)", ""},
      {R"("phase":"p")", R"("phase":1)"},
      {R"("phase":"p")", R"("phase":")" + std::string(kMaxPhase + 1, 'p') + "\""},
      {R"("outcome":"done")", R"("outcome":"fine")"},
      {R"("text":"")", R"("text":null)"},
      {R"("payload":0)", R"("payload":1)"},
      {R"("payload":0)", R"("payload":18446744073709551615)"},
      {R"({"call")", R"([{"call")"},
  };
  for (const auto& [from, to] : damages) {
    std::string bad = good;
    ASSERT_NE(bad.find(from), std::string::npos) << from;
    bad.replace(bad.find(from), from.size(), to);
    EXPECT_EQ(reason(decode_message(Buffer::own(bad))), "coord/bad-message") << to;
  }
}

}  // namespace
}  // namespace cairn::coord
