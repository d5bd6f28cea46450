// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/mark.h"

#include <chrono>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/run/discovery.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;
using testing::LossyFileSystem;
using testing::must;
using testing::reason;
using testing::TempDir;

const Tree kTree = Tree::dict({{"w", Value(Integer(std::int64_t{7}))}});

void save(const std::string& path, std::optional<std::string> mark, Runtime& runtime) {
  const SaveInternals marked{.mark = std::move(mark)};
  must(save_checkpoint({{"model", kTree}}, path, {}, runtime, &marked));
}

/// What a writer leaves that died when the checkpoint had no mark.
void leave_attempt(const std::string& path) {
  const std::string id(32, 'a');
  std::filesystem::create_directories(path + "/.cairn-" + id + "/new");
  testing::write_file(path + "/.cairn-" + id + "/attempt.json",
                      R"({"attempt": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "host": "h", "process": 1,
                          "boot_id": "b", "started": "2026-01-01T00:00:00", "ranks": 1,
                          "run_id": "", "generation": 0, "mark_sha256": null, "prefixes": []})");
}

TEST(Mark, IsWrittenAsTheReferenceSystemDoes) {
  EXPECT_EQ(
      dump_mark({.step = 150, .timestamp = "2026-01-02T05:04:05.678901", .is_temporary = true}),
      R"({"step": 150, "timestamp": "2026-01-02T05:04:05.678901", "is_temporary": true})");
}

TEST(Mark, OfTheReferenceSystemComesBackByteForByte) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run");
  for (const char* name : {"run-90", "run-100", "run-150", "run-200"}) {
    const std::string text = testing::read_file(folder + "/checkpoint/" + name + "/metadata.json");
    EXPECT_EQ(dump_mark(must(parse_mark(text))), text);
  }
}

TEST(Mark, HoldsManyMembersInLittleTime) {
  constexpr int kMembers = 100'000;  // 10^10 comparisons of names, if each looked at all others
  std::string text = "{\"step\": 1";
  for (int i = 0; i < kMembers; ++i)
    text += ", \"m" + std::to_string(i) + "\": " + std::to_string(i);
  text += "}";
  const auto start = std::chrono::steady_clock::now();
  const Mark mark = must(parse_mark(text));
  ASSERT_EQ(mark.extra.object()->size(), std::size_t{kMembers});
  EXPECT_EQ(must(parse_mark(dump_mark(mark))).extra, mark.extra);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(Mark, OfThisMomentHasLocalTimeWithoutAZone) {
  testing::ManualClock clock;
  const Mark mark = make_mark(3, true, clock.wall());
  EXPECT_EQ(mark.step, 3);
  EXPECT_TRUE(mark.is_temporary);
  EXPECT_EQ(mark.timestamp.find_first_of("Z+"), std::string::npos) << mark.timestamp;
  EXPECT_EQ(must(parse_timestamp(mark.timestamp)), clock.wall());
}

TEST(Mark, KeepsTheMembersOfOthersInOrder) {
  const Mark mark = must(parse_mark(
      R"({"z": [1, {"a": null}], "step": 4, "is_temporary": true, "timestamp": "t", "b": 1.5})"));
  EXPECT_EQ(
      dump_mark(mark),
      R"({"step": 4, "timestamp": "t", "is_temporary": true, "z": [1, {"a": null}], "b": 1.5})");
}

struct Case {
  const char* text;
  std::optional<std::int64_t> step;
  std::string timestamp;
  bool is_temporary;
};

TEST(Mark, TakesMembersOfOtherTypesForAbsent) {
  const Case cases[] = {
      {"{}", {}, "", false},
      {R"({"step": 2.0, "is_temporary": true})", 2, "", true},
      {R"({"step": 2.5, "is_temporary": 1})", {}, "", false},
      {R"({"step": "x", "timestamp": 5})", {}, "", false},
      {R"({"step": null, "timestamp": "2026-01-01"})", {}, "2026-01-01", false},
      {R"({"step": 18446744073709551615})", {}, "", false},
      {R"({"step": 7, "metrics": {"loss": NaN, "a\"NaN": -Infinity}})", 7, "", false},
  };
  for (const Case& c : cases) {
    const Mark mark = must(parse_mark(c.text));
    EXPECT_EQ(mark.step, c.step) << c.text;
    EXPECT_EQ(mark.timestamp, c.timestamp) << c.text;
    EXPECT_EQ(mark.is_temporary, c.is_temporary) << c.text;
  }
}

TEST(Mark, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "3", "{", "{\"step\": 1", "\xff", "{\"a\": NaNNaN}"})
    EXPECT_EQ(reason(parse_mark(text)), "mark/bad-json") << text;
}

TEST(Mark, MetricsAreNumbersUnderTheirName) {
  const Json extra = must(parse_json(
      R"({"metrics": {"loss": 1.5, "steps": 3, "bad": "1.5", "none": null}, "loss": 9})"));
  EXPECT_EQ(metric_of(extra, "loss"), 1.5);
  EXPECT_EQ(metric_of(extra, "steps"), 3.0);
  for (const char* name : {"bad", "none", "other"}) EXPECT_EQ(metric_of(extra, name), std::nullopt);
  EXPECT_EQ(metric_of(Json(), "loss"), std::nullopt);
  EXPECT_EQ(metric_of(must(parse_json(R"({"metrics": [1]})")), "loss"), std::nullopt);
}

constexpr const char* kTemporaryMark =
    R"({"mine": [1], "step": 5, "timestamp": "2026-01-01T00:00:00", "is_temporary": true})";

TEST(Promote, MakesATemporaryOnePermanentAndKeepsTheRest) {
  TempDir dir;
  Runtime runtime;
  save(dir / "run-5", kTemporaryMark, runtime);
  EXPECT_TRUE(must(promote(dir / "run-5", runtime)));
  EXPECT_EQ(
      testing::read_file(dir / "run-5/metadata.json"),
      R"({"mine": [1], "step": 5, "timestamp": "2026-01-01T00:00:00", "is_temporary": false})");
  EXPECT_FALSE(must(promote(dir / "run-5", runtime))) << "it is permanent already";
  EXPECT_EQ(find_problem(must(list_run(dir.path(), runtime)).at(0), runtime), "");
}

TEST(Promote, RefusesWhatHasNoMarkAndLeavesNoTrace) {
  TempDir dir;
  Runtime runtime;
  std::filesystem::create_directory(dir / "empty");
  EXPECT_EQ(reason(promote(dir / "empty", runtime)), "mark/none");
  EXPECT_TRUE(std::filesystem::is_empty(dir / "empty"));
  EXPECT_EQ(reason(promote(dir / "nowhere", runtime)), "fs/not-found");
  testing::write_file(dir / "empty/metadata.json", "{\"is_temporary\": true");
  EXPECT_EQ(reason(promote(dir / "empty", runtime)), "mark/bad-json");
}

TEST(Promote, RefusesATornOne) {
  TempDir dir;
  Runtime runtime;
  save(dir / "run-5", kTemporaryMark, runtime);
  leave_attempt(dir / "run-5");
  EXPECT_EQ(reason(promote(dir / "run-5", runtime)), "mark/torn");
  EXPECT_EQ(testing::read_file(dir / "run-5/metadata.json"), kTemporaryMark);
}

TEST(Promote, RefusesWhileSomebodySavesIntoIt) {
  TempDir dir;
  Runtime runtime;
  save(dir / "run-5", kTemporaryMark, runtime);
  const auto attempt = must(begin_attempt(runtime.file_system(), runtime.clock(),
                                          testing::local(dir / "run-5"), {.prefixes = {"other"}}));
  const auto promoted = promote(dir / "run-5", runtime);
  ASSERT_EQ(reason(promoted), "mark/busy");
  EXPECT_THAT(promoted.error().message(), HasSubstr("process " + std::to_string(::getpid())));
}

// A writer that died while it added to a finished checkpoint does not tear it; a new mark must not
// change that.
TEST(Promote, TheRestOfAnAddedSaveDoesNotTearWhatIsPromoted) {
  testing::ManualClock clock;
  LossyFileSystem disk;
  must(disk.make_directory(nullptr, "/run"));
  {
    Runtime runtime({.threads = 1, .file_system = &disk, .clock = &clock});
    save("/run/run-5", kTemporaryMark, runtime);
  }
  auto attempt =
      must(begin_attempt(disk, clock, testing::local("/run/run-5"), {.prefixes = {"other"}}));
  const auto left = disk.after_kill();
  Runtime runtime({.threads = 1, .file_system = left.get(), .clock = &clock});
  EXPECT_FALSE(must(list_run("/run", runtime)).at(0).torn);
  EXPECT_TRUE(must(promote("/run/run-5", runtime)));
  const RunEntry entry = must(list_run("/run", runtime)).at(0);
  EXPECT_FALSE(entry.torn);
  EXPECT_FALSE(entry.is_temporary);
}

TEST(Promote, CutOffAnywhereLeavesTheOldMarkOrTheNew) {
  testing::ManualClock clock;
  LossyFileSystem base;
  must(base.make_directory(nullptr, "/run"));
  {
    Runtime runtime({.threads = 1, .file_system = &base, .clock = &clock});
    save("/run/run-5", kTemporaryMark, runtime);
  }
  bool done = false;
  for (std::size_t n = 0; !done; ++n) {
    const auto disk = base.after_power_cut();
    disk->crash_after(n);
    {
      Runtime runtime({.threads = 1, .file_system = disk.get(), .clock = &clock});
      done = promote("/run/run-5", runtime).has_value();
    }
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const auto left = disk->after_power_cut(seed * 1000 + n);
      Runtime runtime({.threads = 1, .file_system = left.get(), .clock = &clock});
      const auto entries = must(list_run("/run", runtime));
      ASSERT_EQ(entries.size(), 1u);
      EXPECT_EQ(find_problem(entries[0], runtime), "") << "cut after operation " << n;
      if (done) {
        EXPECT_FALSE(entries[0].is_temporary);
      }
    }
    ASSERT_FALSE(HasFailure());
  }
}

TEST(Pin, HoldsWhateverHappensToTheMark) {
  TempDir dir;
  Runtime runtime;
  const std::string path = dir / "run-5";
  save(path, kTemporaryMark, runtime);
  EXPECT_EQ(must(find_pin(path, runtime)), std::nullopt);
  must(pin(path, "used in the paper", runtime));
  testing::write_file(path + "/metadata.json", R"({"step": 6})");
  save(path, R"({"step": 7})", runtime);
  EXPECT_EQ(must(find_pin(path, runtime)), "used in the paper");
  EXPECT_TRUE(must(list_run(dir.path(), runtime)).at(0).pinned);
  must(pin(path, "", runtime));
  EXPECT_EQ(must(find_pin(path, runtime)), "");
  EXPECT_TRUE(must(unpin(path, runtime)));
  EXPECT_FALSE(must(unpin(path, runtime)));
  EXPECT_FALSE(must(list_run(dir.path(), runtime)).at(0).pinned);
}

TEST(Pin, RefusesWhatIsNoCheckpoint) {
  TempDir dir;
  Runtime runtime;
  EXPECT_EQ(reason(pin(dir.path(), "", runtime)), "pin/not-a-checkpoint");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  EXPECT_EQ(reason(pin(dir / "nowhere", "", runtime)), "fs/not-found");
  save(dir / "run-1", "{}", runtime);
  EXPECT_EQ(reason(pin(dir / "run-1", std::string(70000, 'x'), runtime)), "pin/reason-too-long");
}

}  // namespace
}  // namespace cairn
