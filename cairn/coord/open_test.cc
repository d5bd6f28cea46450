// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/open.h"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::coord {
namespace {

using cairn::testing::must;
using cairn::testing::reason;
using cairn::testing::TempDir;

using Variables = std::map<std::string, std::string>;

Result<std::optional<Place>> find_in(const Variables& variables) {
  return find_place([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found != variables.end() ? found->second.c_str() : nullptr;
  });
}

TEST(FindPlace, KnowsTheLaunchers) {
  const std::vector<Variables> rows = {
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}},
      {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}},
      {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}},
      {{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}},
      {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_RANK", "0"}},
      {{"RANK", ""}, {"WORLD_SIZE", ""}, {"PMI_RANK", "3"}, {"PMI_SIZE", "8"}},
      {{"SLURM_PROCID", "0"},
       {"SLURM_NTASKS", "8"},
       {"OMPI_COMM_WORLD_RANK", "3"},
       {"OMPI_COMM_WORLD_SIZE", "8"}},
  };
  for (const Variables& variables : rows) {
    const auto place = must(find_in(variables));
    ASSERT_TRUE(place) << variables.begin()->first;
    EXPECT_EQ(place->rank, 3) << variables.begin()->first;
    EXPECT_EQ(place->count, 8) << variables.begin()->first;
  }
}

TEST(FindPlace, FindsNothingWithoutALauncher) { EXPECT_FALSE(must(find_in({{"HOME", "/"}}))); }

TEST(FindPlace, RefusesHalvesAndNonsense) {
  const std::vector<std::tuple<std::string, std::string, std::string>> rows = {
      {"1", "", "coord/no-rank"},       {"", "2", "coord/no-rank"},
      {"x", "2", "coord/bad-rank"},     {"1", "2x", "coord/bad-rank"},
      {" 1", "2", "coord/bad-rank"},    {"2", "2", "coord/bad-rank"},
      {"-1", "2", "coord/bad-rank"},    {"0", "0", "coord/bad-rank"},
      {"0", "65537", "coord/bad-rank"}, {"0", "99999999999", "coord/bad-rank"},
  };
  for (const auto& [rank, count, expected] : rows) {
    EXPECT_EQ(reason(find_in({{"RANK", rank}, {"WORLD_SIZE", count}})), expected)
        << rank << " of " << count;
  }
  EXPECT_NE(find_in({{"SLURM_PROCID", "1"}}).error().message().find("SLURM_NTASKS is not"),
            std::string::npos);
}

TEST(OpenCoordinator, IsAloneWithoutARendezvous) {
  const auto alone = must(open_coordinator({.place = Place{0, 1}}));
  EXPECT_EQ(alone->rank(), 0);
  EXPECT_EQ(alone->count(), 1);
  must(alone->barrier("alone", Deadline::never()));
}

TEST(OpenCoordinator, IsAloneWithoutALauncherOnlyIfThatMayBe) {
  for (const char* name : {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "PMI_RANK", "PMI_SIZE", "SLURM_PROCID", "SLURM_NTASKS"})
    unsetenv(name);
  const TempDir dir;
  const std::string place = dir / "meet";
  const auto refused = open_coordinator({.rendezvous = place});
  ASSERT_EQ(reason(refused), "coord/no-rank");
  EXPECT_NE(refused.error().message().find("RANK=0 and WORLD_SIZE=1"), std::string::npos);
  const auto alone = must(open_coordinator({.rendezvous = place, .may_be_alone = true}));
  EXPECT_EQ(alone->count(), 1);
  EXPECT_FALSE(std::filesystem::exists(place)) << "nobody to meet";
  const auto one =
      must(open_coordinator({.rendezvous = place, .place = Place{1, 2}, .may_be_alone = true}));
  EXPECT_EQ(one->count(), 2);
}

TEST(OpenCoordinator, NeedsAPlaceToMeetForSeveralRanks) {
  const auto opened = open_coordinator({.place = Place{1, 2}});
  ASSERT_EQ(reason(opened), "coord/no-rendezvous");
  EXPECT_NE(opened.error().message().find("rank 1 of 2"), std::string::npos);
}

TEST(OpenCoordinator, MakesTheDirectoryAndMeetsThere) {
  const TempDir dir;
  const std::string place = dir / "not/there/yet";
  const auto zero = must(open_coordinator({.rendezvous = place, .place = Place{0, 2}}));
  const auto one = must(open_coordinator({.rendezvous = "file://" + place, .place = Place{1, 2}}));
  EXPECT_EQ(one->rank(), 1);
  const auto late = zero->barrier("start", Deadline::in(std::chrono::nanoseconds(0)));
  EXPECT_EQ(reason(late), "coord/late-ranks");
  EXPECT_EQ(reason(one->barrier("start", Deadline::in(std::chrono::minutes(2)))),
            "coord/late-ranks");
}

TEST(OpenCoordinator, RefusesWhatItCannotOpen) {
  const Place place{0, 2};
  EXPECT_EQ(reason(open_coordinator({.rendezvous = "nfs://a/b", .place = place})),
            "storage/unknown-scheme");
  EXPECT_EQ(reason(open_coordinator({.rendezvous = "memory://m/", .place = Place{2, 2}})),
            "coord/bad-rank");
}

}  // namespace
}  // namespace cairn::coord
