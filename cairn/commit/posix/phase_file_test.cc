// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/phase_file.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/commit/rank_files.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::must;

TEST(RankPhase, ComesBackAsItWas) {
  const RankPhase said{.phase = "writing \"x\"",
                       .done = 3,
                       .total = ~std::uint64_t{0},
                       .since = "2026-01-01T00:00:00.000000+00:00",
                       .time = "2026-01-01T00:00:01.000000+00:00",
                       .writer = {"host", 42, "boot"}};
  const RankPhase back = must(parse_rank_phase(dump_rank_phase(said) + "\nolder, longer"));
  EXPECT_EQ(back.phase, said.phase);
  EXPECT_EQ(back.done, said.done);
  EXPECT_EQ(back.total, said.total);
  EXPECT_EQ(back.since, said.since);
  EXPECT_EQ(back.time, said.time);
  EXPECT_EQ(back.writer.host, "host");
  EXPECT_EQ(back.writer.process, 42);
  EXPECT_EQ(back.writer.boot_id, "boot");
}

TEST(RankPhase, WhatIsHalfWrittenIsRefusedAndWhatIsStrangeIsEmpty) {
  const std::string whole = dump_rank_phase({.phase = "writing", .total = 5});
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_EQ(testing::reason(parse_rank_phase(whole.substr(0, n))), "ranks/bad-phase") << n;
  for (const char* const text : {"", "{}", "[]", "null", R"({"phase":3})", R"({"phase":""})"})
    EXPECT_EQ(testing::reason(parse_rank_phase(text)), "ranks/bad-phase") << text;
  const RankPhase strange =
      must(parse_rank_phase(R"({"phase":"x","done":-1,"total":"9","time":1,"process":"p"})"));
  EXPECT_EQ(strange.done, 0u);
  EXPECT_EQ(strange.total, 0u);
  EXPECT_EQ(strange.time, "");
  EXPECT_EQ(strange.writer.process, 0);
}

TEST(RankFiles, ANameIsARankOnlyWithItsNumberInFront) {
  EXPECT_EQ(rank_in("17.phase", kPhaseEnding), 17);
  EXPECT_EQ(rank_in("3.written.json", report_ending("written")), 3);
  for (const char* const name : {".phase", "x.phase", "-1.phase", "1.phase.tmp", "1x.phase",
                                 "99999999999.phase", "1.written.json"})
    EXPECT_EQ(rank_in(name, kPhaseEnding), std::nullopt) << name;
}

class Phases : public ::testing::Test {
 protected:
  std::string text() const {
    return must(dest_.read("a/" + phase_file(0), 64 * kKiB)).value_or("");
  }
  RankPhase said() const { return must(parse_rank_phase(text())); }

  testing::TempDir dir_;
  std::size_t operations_ = 0;
  const std::unique_ptr<storage::FileSystem> fs_ =
      testing::interpose(storage::posix_file_system(), [this](std::size_t) { ++operations_; });
  const Directory dest_ = [this] {
    Directory dest = must(Directory::open(*fs_, testing::local(dir_.path()), false));
    must(dest.make("a/" + std::string(kRanksDirectory)));
    return dest;
  }();
  testing::ManualClock clock_;
};

TEST_F(Phases, BytesAreToldOnceASecondAndWithEachPhase) {
  const auto file = must(PhaseFile::open(dest_, "a", 0, clock_));
  must(file->enter("writing"));
  file->count(0, 100);
  EXPECT_EQ(said().total, 100u) << "the total is told as soon as it is known";
  const std::size_t before = operations_;
  for (std::uint64_t n = 1; n <= 50; ++n) {
    clock_.advance(milliseconds(10));
    file->count(n, 100);
  }
  EXPECT_EQ(operations_, before) << "half a second";
  EXPECT_EQ(said().done, 0u);
  clock_.advance(milliseconds(500));
  file->count(51, 100);
  EXPECT_EQ(said().done, 51u);
  EXPECT_EQ(said().since, "2026-01-01T00:00:00.000000+00:00");
  EXPECT_EQ(said().time, "2026-01-01T00:00:01.000000+00:00");
  file->count(100, 100);
  clock_.advance(milliseconds(250));
  must(file->enter("syncing"));
  EXPECT_EQ(said().phase, "syncing");
  EXPECT_EQ(said().done, 100u);
  EXPECT_EQ(said().since, said().time);
}

TEST_F(Phases, AShorterPhaseLeavesNothingOfALongerOne) {
  const auto file = must(PhaseFile::open(dest_, "a", 0, clock_));
  must(file->enter("a phase with a long name"));
  must(file->enter("x"));
  EXPECT_EQ(text().find("name"), std::string::npos);
  EXPECT_EQ(text().find('\n'), text().size() - 1) << "one line";
}

TEST_F(Phases, ARankLivesForAsLongAsItHoldsItsFile) {
  EXPECT_FALSE(look_at_phase(dest_, "a/" + phase_file(0)));
  auto file = must(PhaseFile::open(dest_, "a", 0, clock_));
  must(file->enter("writing"));
  EXPECT_EQ(look_at_phase(dest_, "a/" + phase_file(0))->alive, true);
  file.reset();
  EXPECT_EQ(look_at_phase(dest_, "a/" + phase_file(0))->alive, false);
  RankPhase elsewhere = said();
  elsewhere.writer.boot_id = "of another host";
  must(dest_.write_synced("a/" + phase_file(0), dump_rank_phase(elsewhere)));
  EXPECT_EQ(look_at_phase(dest_, "a/" + phase_file(0))->alive, std::nullopt);
}

Tree some_tree() {
  testing::Random random(1);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {5, 3})},
                     {"b", testing::random_array(random, DType::kInt8, {7})}});
}

TEST(PhaseOfASave, IsThereForOneProcessToo) {
  testing::LossyFileSystem disk;
  Runtime runtime({.threads = 1, .file_system = &disk});
  std::vector<RankPhase> seen;
  SaveInternals watching;
  watching.phase = [&](std::string_view) {
    for (const auto& [path, content] : disk.snapshot()) {
      if (path.ends_with("/ranks/0.phase")) seen.push_back(must(parse_rank_phase(content)));
    }
  };
  must(save_checkpoint({{"", some_tree()}}, "/c", {}, runtime, &watching));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].phase, "writing");
  EXPECT_EQ(seen[1].phase, "syncing");
  EXPECT_EQ(seen[2].phase, "committing");
  EXPECT_EQ(seen[2].done, 67u);
  EXPECT_EQ(seen[2].total, 67u);
  for (const auto& [path, content] : disk.snapshot())
    EXPECT_EQ(path.find(".phase"), std::string::npos) << path;
}

TEST(PhaseOfASave, CostsFewOperationsAndFailsNoSave) {
  testing::LossyFileSystem disk;
  testing::ManualClock clock;
  Runtime runtime({.threads = 1, .file_system = &disk, .clock = &clock});
  must(save_tree(some_tree(), "/c", {}, runtime));
  std::vector<std::size_t> ours;
  const auto operations = disk.operations();
  for (std::size_t n = 0; n < operations.size(); ++n) {
    if (operations[n].path.ends_with(".phase") &&
        operations[n].path.find("trash") == std::string::npos)
      ours.push_back(n);
  }
  EXPECT_EQ(ours.size(), 6u) << "made, locked, three phases and the total";
  for (const std::size_t n : ours) {
    for (const int error : {EIO, ENOSPC, EACCES, EROFS}) {
      testing::LossyFileSystem ill;
      ill.fail_at(n, error);
      Runtime other({.threads = 1, .file_system = &ill, .clock = &clock});
      const auto saved = save_tree(some_tree(), "/c", {}, other);
      EXPECT_TRUE(saved) << operations[n].name << ": " << saved.error().to_string();
    }
  }
}

}  // namespace
}  // namespace cairn
