// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/coordinator_suite.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/testing/must.h"

namespace cairn::testing {
namespace {

using coord::Coordinator;
using coord::kMaxPayload;
using coord::kMaxPhase;

// Nobody waits that long: it ends a test that would hang.
Deadline soon_enough() { return Deadline::in(std::chrono::minutes(2)); }
Deadline short_deadline() { return Deadline::in(std::chrono::milliseconds(300)); }

std::string text_of(const Buffer& buffer) { return std::string(as_text(buffer.bytes())); }

// Some work, so that ranks come in any order.
void dawdle(std::mt19937_64& random) {
  random.discard(random() % 100'000);
  if (random() % 4 == 0) std::this_thread::yield();
}

std::string bytes_from(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  std::string text;
  while (text.size() < size) text += std::to_string(random());
  text.resize(size);
  return text;
}

template <typename T>
std::string sentence(const Result<T>& result) {
  return result ? "no error" : result.error().to_string();
}

void nobody_leaves_a_barrier_before_all_have_come(Coordinator& me) {
  std::mt19937_64 random(static_cast<std::uint64_t>(me.rank()));
  for (int round = 0; round < 20; ++round) {
    dawdle(random);
    std::array<std::int64_t, 2> times{};
    times[0] = std::chrono::steady_clock::now().time_since_epoch().count();
    must(me.barrier("round", soon_enough()));
    times[1] = std::chrono::steady_clock::now().time_since_epoch().count();
    const auto all = must(me.gather(std::as_bytes(std::span(times)), "times", soon_enough()));
    std::int64_t last_in = 0;
    std::int64_t first_out = std::numeric_limits<std::int64_t>::max();
    for (const Buffer& theirs : all) {
      ASSERT_EQ(theirs.size(), sizeof times);
      std::memcpy(times.data(), theirs.data(), sizeof times);
      last_in = std::max(last_in, times[0]);
      first_out = std::min(first_out, times[1]);
    }
    EXPECT_LE(last_in, first_out);
  }
}

void all_get_the_bytes_of_rank_0(Coordinator& me) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{70'001}, kMaxPayload}) {
    const std::string sent = bytes_from(size, size);
    const std::string ignored(kMaxPayload + 1, 'x');
    const std::string& mine = me.rank() == 0 ? sent : ignored;
    const Buffer got = must(me.broadcast(as_bytes(mine), "news", soon_enough()));
    EXPECT_TRUE(got.immutable());
    EXPECT_TRUE(text_of(got) == sent) << size << " bytes on rank " << me.rank();
  }
}

void rank_0_gets_the_bytes_of_all(Coordinator& me) {
  const auto bytes_of = [](int rank) {
    return bytes_from(static_cast<std::uint64_t>(rank), static_cast<std::size_t>(rank) * 30'011);
  };
  const auto got = must(me.gather(as_bytes(bytes_of(me.rank())), "reports", soon_enough()));
  ASSERT_EQ(got.size(), me.rank() == 0 ? static_cast<std::size_t>(me.count()) : 0);
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    EXPECT_TRUE(text_of(got[rank]) == bytes_of(static_cast<int>(rank))) << rank;
  }
}

void takes_the_largest_payload_from_every_rank(Coordinator& me) {
  const std::string mine(kMaxPayload, static_cast<char>('a' + me.rank() % 26));
  const auto got = must(me.gather(as_bytes(mine), "large", soon_enough()));
  for (std::size_t rank = 0; rank < got.size(); ++rank) {
    ASSERT_EQ(got[rank].size(), kMaxPayload);
    EXPECT_EQ(as_text(got[rank].bytes()).back(), static_cast<char>('a' + rank % 26));
  }
}

void many_calls_of_all_kinds_in_uneven_order(Coordinator& me) {
  std::mt19937_64 same(7);
  std::mt19937_64 own(static_cast<std::uint64_t>(me.rank()));
  for (int call = 0; call < 150; ++call) {
    if (own() % 4 == 0) dawdle(own);
    const std::string phase = "call " + std::to_string(same() % 3);
    const std::string sent = bytes_from(same(), same() % 200);
    switch (same() % 3) {
      case 0:
        must(me.barrier(phase, soon_enough()));
        break;
      case 1:
        EXPECT_EQ(text_of(must(me.broadcast(as_bytes(sent), phase, soon_enough()))), sent);
        break;
      default:
        const std::string mine = sent + std::to_string(me.rank());
        const auto got = must(me.gather(as_bytes(mine), phase, soon_enough()));
        for (std::size_t rank = 0; rank < got.size(); ++rank) {
          EXPECT_EQ(text_of(got[rank]), sent + std::to_string(rank));
        }
    }
  }
}

void refuses_bad_arguments_and_goes_on(Coordinator& me) {
  const std::string long_phase(kMaxPhase + 1, 'p');
  for (const std::string& phase : {std::string(), long_phase, std::string("a\nb"),
                                   std::string("\xff"), std::string("a\0b", 3)}) {
    EXPECT_EQ(reason(me.barrier(phase, soon_enough())), "coord/bad-phase") << phase;
  }
  const std::string large(kMaxPayload + 1, 'x');
  EXPECT_EQ(reason(me.gather(as_bytes(large), "p", soon_enough())), "coord/payload-too-large");
  if (me.rank() == 0) {
    EXPECT_EQ(reason(me.broadcast(as_bytes(large), "p", soon_enough())), "coord/payload-too-large");
  }
  must(me.barrier(long_phase.substr(1), soon_enough()));
  must(me.barrier("caf\xc3\xa9 \"\\", soon_enough()));
}

void a_deadline_that_has_passed_does_no_harm_when_all_are_there(Coordinator& me) {
  if (me.count() > 1) return;
  must(me.barrier("alone", Deadline::in(std::chrono::nanoseconds(0))));
}

void names_a_late_rank_and_its_phase(Coordinator& me) {
  must(me.barrier("load", soon_enough()));
  if (me.rank() == 1) return;
  const auto late = me.barrier("save 100", me.rank() == 0 ? short_deadline() : soon_enough());
  ASSERT_EQ(reason(late), "coord/late-ranks");
  EXPECT_EQ(late.error().code(), Code::kDeadlineExceeded);
  EXPECT_NE(sentence(late).find("rank 1 did not come to barrier 'save 100' before the deadline: "
                                "last seen in 'load'"),
            std::string::npos)
      << sentence(late);
}

void says_when_a_late_rank_was_never_seen(Coordinator& me) {
  if (me.rank() == me.count() - 1) return;
  const auto late = me.barrier("start", me.rank() == 0 ? short_deadline() : soon_enough());
  EXPECT_EQ(reason(late), "coord/late-ranks");
  EXPECT_NE(sentence(late).find("rank " + std::to_string(me.count() - 1) + " did"),
            std::string::npos);
  EXPECT_NE(sentence(late).find("not seen in this job before"), std::string::npos);
}

void names_rank_0_when_it_is_late(Coordinator& me) {
  must(me.barrier("load", soon_enough()));
  if (me.rank() == 0) return;
  const auto late = me.broadcast({}, "decide", short_deadline());
  EXPECT_EQ(reason(late), "coord/late-ranks");
  EXPECT_NE(sentence(late).find("rank 0 did not come to broadcast 'decide' before the deadline: "
                                "last seen in 'load'"),
            std::string::npos)
      << sentence(late);
}

// Who gives up first decides what the others hear, but everybody hears something, without waiting
// for the far deadline.
void one_rank_that_gives_up_ends_it_for_all(Coordinator& me) {
  if (me.count() < 3) return;
  must(me.barrier("load", soon_enough()));
  if (me.rank() == 1) return;
  const auto late = me.barrier("save 100", me.rank() == 2 ? short_deadline() : soon_enough());
  EXPECT_TRUE(reason(late) == "coord/late-ranks" || reason(late) == "coord/rank-failed")
      << sentence(late);
  EXPECT_EQ(reason(me.barrier("next", soon_enough())), "coord/dead");
}

void names_both_phases_when_they_differ(Coordinator& me) {
  must(me.barrier("load", soon_enough()));
  const bool odd = me.rank() == me.count() - 1;
  const auto result = me.barrier(odd ? "save 200" : "save 100", soon_enough());
  ASSERT_EQ(reason(result), "coord/phase-mismatch");
  EXPECT_EQ(result.error().code(), Code::kFailedPrecondition);
  EXPECT_NE(sentence(result).find("rank 0 is in barrier 'save 100', rank " +
                                  std::to_string(me.count() - 1) + " in barrier 'save 200'"),
            std::string::npos)
      << sentence(result);
}

void names_both_operations_when_they_differ(Coordinator& me) {
  std::string said;
  if (me.rank() == 0) {
    said = sentence(me.gather({}, "same", soon_enough()));
  } else {
    said = sentence(me.broadcast({}, "same", soon_enough()));
  }
  EXPECT_NE(said.find("rank 0 is in gather 'same', rank "), std::string::npos) << said;
  EXPECT_NE(said.find(" in broadcast 'same'"), std::string::npos) << said;
}

void is_dead_after_an_error_and_says_why(Coordinator& me) {
  const auto first = me.barrier(me.rank() == 0 ? "a" : "b", soon_enough());
  EXPECT_EQ(reason(first), "coord/phase-mismatch");
  for (int again = 0; again < 2; ++again) {
    const auto later = me.gather({}, "c", Deadline::never());
    ASSERT_EQ(reason(later), "coord/dead");
    EXPECT_EQ(later.error().code(), Code::kFailedPrecondition);
    EXPECT_NE(sentence(later).find(sentence(first)), std::string::npos);
  }
  EXPECT_EQ(reason(me.barrier("", Deadline::never())), "coord/bad-phase");
}

using Body = void (*)(Coordinator&);

struct Row {
  const char* name;
  int least;  ///< ranks
  Body body;
};

constexpr auto kTests = std::to_array<Row>({
    {"NobodyLeavesABarrierBeforeAllHaveCome", 1, &nobody_leaves_a_barrier_before_all_have_come},
    {"AllGetTheBytesOfRank0", 1, &all_get_the_bytes_of_rank_0},
    {"Rank0GetsTheBytesOfAll", 1, &rank_0_gets_the_bytes_of_all},
    {"TakesTheLargestPayloadFromEveryRank", 1, &takes_the_largest_payload_from_every_rank},
    {"ManyCallsOfAllKindsInUnevenOrder", 1, &many_calls_of_all_kinds_in_uneven_order},
    {"RefusesBadArgumentsAndGoesOn", 1, &refuses_bad_arguments_and_goes_on},
    {"ADeadlineThatHasPassedDoesNoHarmWhenAllAreThere", 1,
     &a_deadline_that_has_passed_does_no_harm_when_all_are_there},
    {"NamesALateRankAndItsPhase", 2, &names_a_late_rank_and_its_phase},
    {"SaysWhenALateRankWasNeverSeen", 2, &says_when_a_late_rank_was_never_seen},
    {"NamesRank0WhenItIsLate", 2, &names_rank_0_when_it_is_late},
    {"OneRankThatGivesUpEndsItForAll", 3, &one_rank_that_gives_up_ends_it_for_all},
    {"NamesBothPhasesWhenTheyDiffer", 2, &names_both_phases_when_they_differ},
    {"NamesBothOperationsWhenTheyDiffer", 2, &names_both_operations_when_they_differ},
    {"IsDeadAfterAnErrorAndSaysWhy", 2, &is_dead_after_an_error_and_says_why},
});

class CoordinatorTest : public ::testing::Test {
 public:
  CoordinatorTest(CoordinatorsMaker make, int count, Body body)
      : make_(std::move(make)), count_(count), body_(body) {}
  void TestBody() override {
    const Coordinators coordinators = make_(count_);
    ASSERT_FALSE(coordinators.empty());
    for (const auto& coordinator : coordinators) ASSERT_EQ(coordinator->count(), count_);
    run_ranks(coordinators, body_);
  }

 private:
  CoordinatorsMaker make_;
  int count_;
  Body body_;
};

}  // namespace

bool register_coordinator_suite(const std::string& name, int count, const CoordinatorsMaker& make) {
  const std::string suite = name + "Of" + std::to_string(count);
  for (const Row& row : kTests) {
    if (count < row.least) continue;
    const auto make_test = [make, count, body = row.body]() -> ::testing::Test* {
      return new CoordinatorTest(make, count, body);
    };
    ::testing::RegisterTest(suite.c_str(), row.name, nullptr, nullptr, __FILE__, __LINE__,
                            make_test);
  }
  return true;
}

void run_ranks(const Coordinators& coordinators,
               const std::function<void(coord::Coordinator&)>& body) {
  const auto guarded = [&](Coordinator& coordinator) {
    try {
      body(coordinator);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << coordinator.rank() << ": " << error.what();
    }
  };
  if (coordinators.size() == 1) return guarded(*coordinators[0]);
  std::vector<std::thread> threads;
  for (const auto& coordinator : coordinators) {
    threads.emplace_back([&guarded, &coordinator] { guarded(*coordinator); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace cairn::testing
