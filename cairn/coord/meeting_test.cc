// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/meeting.h"

#include <deque>
#include <optional>

#include <gtest/gtest.h>

#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"

namespace cairn::coord {
namespace {

using cairn::testing::ManualClock;
using cairn::testing::must;
using cairn::testing::reason;
using std::chrono::hours;
using std::chrono::seconds;

using Looked = Result<std::vector<Received>>;

Error unavailable() { return Error(Code::kUnavailable, "storage/busy", "come back later"); }

// What a channel does, written down: looks find what the script says, then nothing more.
struct Script {
  ManualClock clock;
  std::deque<Looked> looks;
  std::deque<Result<void>> sends;
  std::vector<Message> sent;
  int looked = 0;
  int unsettled = 0;  ///< how often settled() says no
  std::vector<std::chrono::nanoseconds> waits;
};

class ScriptedChannel final : public Channel {
 public:
  ScriptedChannel(Script& script, Place place) : script_(script), place_(place) {}

  Place place() const override { return place_; }
  Clock& clock() override { return script_.clock; }
  Result<void> send(const Message& message) override {
    script_.sent.push_back(message);
    return next(script_.sends).value_or(Result<void>());
  }
  Result<bool> settled() override { return --script_.unsettled < 0; }
  Looked receive(std::uint64_t, std::span<const int>) override {
    ++script_.looked;
    return next(script_.looks).value_or(Looked(std::vector<Received>()));
  }
  void wait(std::chrono::nanoseconds span) override {
    script_.waits.push_back(span);
    script_.clock.advance(span);
  }

 private:
  template <typename T>
  static std::optional<T> next(std::deque<T>& queue) {
    if (queue.empty()) return std::nullopt;
    T first = std::move(queue.front());
    queue.pop_front();
    return first;
  }

  Script& script_;
  Place place_;
};

Looked from(int rank, Message message) { return std::vector<Received>{{rank, std::move(message)}}; }

class MeetingTest : public ::testing::Test {
 protected:
  std::unique_ptr<Coordinator> join(Place place) {
    return make_coordinator(std::make_unique<ScriptedChannel>(script, place));
  }
  Deadline in(std::chrono::nanoseconds span) { return Deadline::in(span, script.clock); }

  Script script;
};

TEST_F(MeetingTest, AVerdictOneCallEarlySaysThatThisCallIsDone) {
  const auto me = join({1, 2});
  script.looks.push_back(from(0, {.call = 2,
                                  .phase = "b",
                                  .outcome = CallStatus::kFailed,
                                  .text = "rank 0 failed",
                                  .payload = Buffer::own("news")}));
  EXPECT_EQ(as_text(must(me->broadcast({}, "a", in(seconds(1)))).bytes()), "news");
}

TEST_F(MeetingTest, TheVerdictOfAFailedCallCarriesTheLastPayload) {
  const auto me = join({0, 2});
  script.looks.push_back(from(1, {.call = 1, .operation = Operation::kBroadcast, .phase = "a"}));
  must(me->broadcast(as_bytes("news"), "a", in(seconds(1))));
  EXPECT_EQ(reason(me->barrier("b", in(seconds(1)))), "coord/late-ranks");
  ASSERT_EQ(script.sent.size(), 2);
  EXPECT_EQ(script.sent[1].outcome, CallStatus::kLate);
  EXPECT_EQ(as_text(script.sent[1].payload.bytes()), "news");
}

TEST_F(MeetingTest, WaitsGrowButStayShortAndEndAtTheDeadline) {
  const auto me = join({1, 2});
  const auto start = script.clock.monotonic();
  EXPECT_EQ(reason(me->barrier("a", in(hours(1)))), "coord/late-ranks");
  EXPECT_EQ(script.clock.monotonic() - start, hours(1) + Coordinator::kGrace);
  EXPECT_LT(script.looked, 4 * 3600 + 120);
  EXPECT_LT(script.waits.front(), std::chrono::milliseconds(1));
  for (const auto wait : script.waits) EXPECT_LE(wait, std::chrono::milliseconds(250));
}

TEST_F(MeetingTest, WithoutADeadlineWaitsForever) {
  const auto me = join({1, 2});
  script.looks.assign(100'000, std::vector<Received>());
  script.looks.push_back(from(0, {.call = 1, .phase = "a"}));
  must(me->barrier("a", Deadline::never()));
}

TEST_F(MeetingTest, WhatIsUnavailableIsTriedAgain) {
  const auto me = join({1, 2});
  script.sends.assign(3, unavailable());
  script.looks.assign(5, unavailable());
  script.looks.push_back(from(0, {.call = 1, .phase = "a"}));
  must(me->barrier("a", in(seconds(60))));
  EXPECT_EQ(script.sent.size(), 4);
  EXPECT_EQ(script.looked, 6);
}

TEST_F(MeetingTest, SaysWhatHinderedTheLastLook) {
  const auto me = join({0, 2});
  script.looks.assign(100'000, unavailable());
  const auto late = me->barrier("a", in(seconds(60)));
  ASSERT_EQ(reason(late), "coord/late-ranks");
  EXPECT_NE(late.error().message().find("(the last look failed: come back later)"),
            std::string::npos);
}

TEST_F(MeetingTest, ARankThatGivesUpAsksFirstAndThenSaysFarewell) {
  const auto me = join({2, 3});
  EXPECT_EQ(reason(me->gather(as_bytes("mine"), "a", in(seconds(5)))), "coord/late-ranks");
  ASSERT_EQ(script.sent.size(), 3);
  EXPECT_EQ(script.sent[0].outcome, CallStatus::kDone);
  EXPECT_EQ(script.sent[1].outcome, CallStatus::kLate);
  EXPECT_EQ(script.sent[1].call, 1);
  EXPECT_EQ(as_text(script.sent[1].payload.bytes()), "mine") << "it may still be wanted";
  EXPECT_EQ(script.sent[2].outcome, CallStatus::kFailed);
  EXPECT_EQ(script.sent[2].call, 2);
}

TEST_F(MeetingTest, Rank0JudgesWhenAnotherRankGivesUp) {
  const auto me = join({0, 3});
  script.looks.push_back(from(1, {.call = 1, .phase = "a", .outcome = CallStatus::kLate}));
  const auto late = me->barrier("a", Deadline::never());
  ASSERT_EQ(reason(late), "coord/late-ranks");
  EXPECT_EQ(late.error().message().find("rank 2 did not come to barrier 'a' before the deadline of "
                                        "rank 1"),
            0);
  EXPECT_EQ(script.looked, 2) << "one more look at everybody";
}

TEST_F(MeetingTest, AnAnswerInTheGraceCounts) {
  const auto me = join({1, 2});
  script.looks.assign(2, std::vector<Received>());
  script.looks.push_back(from(0, {.call = 1, .phase = "a"}));
  must(me->barrier("a", in(std::chrono::microseconds(1))));
  ASSERT_EQ(script.sent.size(), 2);
  EXPECT_EQ(script.sent[1].outcome, CallStatus::kLate);
}

TEST_F(MeetingTest, Rank0StaysUntilItsVerdictHasLeftOrTheDeadlinePasses) {
  const auto me = join({0, 2});
  for (const int unsettled : {3, 1'000'000}) {
    script.waits.clear();
    script.unsettled = unsettled;
    script.looks.push_back(from(1, {.call = 1, .phase = "a"}));
    must(me->barrier("a", in(seconds(5))));
    EXPECT_EQ(script.waits.size() == 3, unsettled == 3);
  }
}

TEST_F(MeetingTest, ARankWhoseChannelFailsTellsTheOthersWhy) {
  const auto me = join({1, 2});
  script.looks.push_back(Error(Code::kPermissionDenied, "fs/permission", "permission denied"));
  const auto failed = me->barrier("a", in(seconds(5)));
  ASSERT_EQ(reason(failed), "coord/rank-failed");
  EXPECT_EQ(failed.error().message(), "rank 1 failed: permission denied");
  ASSERT_EQ(script.sent.size(), 2);
  EXPECT_EQ(script.sent[1].text, "permission denied");
}

TEST_F(MeetingTest, Rank0WhoseChannelFailsTellsTheOthersWhy) {
  const auto me = join({0, 2});
  script.looks.push_back(Error(Code::kPermissionDenied, "fs/permission", "permission denied"));
  EXPECT_EQ(reason(me->barrier("a", in(seconds(5)))), "coord/rank-failed");
  ASSERT_EQ(script.sent.size(), 1);
  EXPECT_EQ(script.sent[0].text, "rank 0 failed: permission denied");
}

TEST_F(MeetingTest, Rank0FailsWhenItsVerdictCannotBeSent) {
  const auto me = join({0, 2});
  script.looks.push_back(from(1, {.call = 1, .phase = "a"}));
  script.sends.push_back(Error(Code::kPermissionDenied, "fs/permission", "permission denied"));
  EXPECT_EQ(reason(me->barrier("a", in(seconds(5)))), "coord/rank-failed");
  EXPECT_EQ(reason(me->barrier("b", in(seconds(5)))), "coord/dead");
}

}  // namespace
}  // namespace cairn::coord
