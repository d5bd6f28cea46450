// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/discovery.h"

#include <filesystem>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/base/json.h"
#include "cairn/commit/posix/file_attempt.h"
#include "cairn/manifest/names.h"
#include "cairn/run/mark.h"
#include "cairn/save/save.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/fixtures.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::must;
using testing::reason;
using testing::TempDir;
using ::testing::UnorderedElementsAre;

/// A runtime that remembers what was logged.
struct Ear {
  std::mutex mutex;
  std::vector<LogEntry> entries;
  Runtime runtime{{.log = [this](const LogEntry& entry) {
    const std::lock_guard lock(mutex);
    entries.push_back(entry);
  }}};
};

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string latest(const std::string& base, Runtime& runtime) {
  const auto found = must(find_latest_checkpoint(base, runtime));
  return found ? name_of(*found) : "none";
}

std::vector<std::string> names(const std::vector<RunEntry>& entries) {
  std::vector<std::string> result;
  for (const RunEntry& entry : entries) result.push_back(entry.name);
  return result;
}

RunEntry entry_named(const std::vector<RunEntry>& entries, const std::string& name) {
  for (const RunEntry& entry : entries) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << "no entry " << name;
  return {};
}

std::string mark(int step, const std::string& timestamp, bool temporary = false) {
  return dump_json(
      Json::Object{{"step", step}, {"timestamp", timestamp}, {"is_temporary", temporary}});
}

void save(const std::string& path, std::optional<std::string> with_mark, Runtime& runtime) {
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
  const SaveInternals marked{.mark = std::move(with_mark)};
  must(save_checkpoint({{"model", tree}}, path, {}, runtime, &marked));
}

TEST(Discovery, TakesTheHighestStepOfTheReferencesRunWhateverItsClocksSay) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run");
  Ear ear;
  const Json expected = must(parse_json(testing::read_file(folder + "/expected.json")));
  EXPECT_EQ(latest(folder + "/checkpoint", ear.runtime), *expected.find("latest_by_step")->text());
}

TEST(Discovery, ListsTheReferencesRunNewestFirst) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run");
  Ear ear;
  const auto entries = must(list_run(folder + "/checkpoint", ear.runtime));
  // run-250 was torn by removing its mark: it has no step, and nobody takes it.
  EXPECT_THAT(names(entries), ElementsAre("run-200", "run-150", "run-100", "run-90", "run-250"));
  for (const RunEntry& entry : entries) {
    EXPECT_EQ(entry.marked, entry.name != "run-250") << entry.name;
    EXPECT_EQ(entry.is_temporary, entry.name == "run-150") << entry.name;
    EXPECT_EQ(entry.problem, "") << entry.name;
  }
}

TEST(Discovery, SkipsEveryDamageOfTheReferencesRunAndSaysWhy) {
  CAIRN_FIXTURE_OR_SKIP(folder, "eformer_run_damaged");
  Ear ear;
  const Json expected = must(parse_json(testing::read_file(folder + "/expected.json")));
  EXPECT_EQ(latest(folder + "/checkpoint", ear.runtime), *expected.find("latest_by_step")->text());
  // Marks without a step come after those with one, so the search ended before them.
  ASSERT_EQ(ear.entries.size(), 2U);
  EXPECT_STREQ(ear.entries[0].event, "discovery/skipped");
  EXPECT_THAT(ear.entries[0].message, HasSubstr("run-15 was skipped: tensorstore_index.json"));
  EXPECT_THAT(ear.entries[1].message, HasSubstr("run-14 was skipped: leaf w: "));
  EXPECT_THAT(ear.entries[1].message, HasSubstr("model/w/0.0 is missing"));
  const auto entries = must(list_run(folder + "/checkpoint", ear.runtime));
  for (const char* name : {"run-11", "run-12", "run-13"}) {
    EXPECT_THAT(entry_named(entries, name).problem, HasSubstr("metadata.json")) << name;
  }
}

TEST(Discovery, OrdersByStepThenByInstantThenByName) {
  Ear ear;
  TempDir dir;
  save(dir / "a", mark(3, "2026-01-01T00:00:00"), ear.runtime);
  save(dir / "b", mark(20, "2020-01-01T00:00:00"), ear.runtime);
  save(dir / "c", mark(20, "2020-01-01T03:00:00+05:00"), ear.runtime);
  save(dir / "d", mark(20, "2020-01-01T00:00:00"), ear.runtime);
  save(dir / "e", mark(20, "no time at all"), ear.runtime);
  save(dir / "f", std::nullopt, ear.runtime);
  EXPECT_THAT(names(must(list_run(dir.path(), ear.runtime))),
              ElementsAre("d", "b", "c", "e", "a", "f"));
  EXPECT_EQ(latest(dir.path(), ear.runtime), "d");
  EXPECT_TRUE(ear.entries.empty());
}

TEST(Discovery, TheBaseItselfMayBeTheCheckpoint) {
  Ear ear;
  TempDir dir;
  save(dir / "run", mark(1, "2026-01-01T00:00:00"), ear.runtime);
  EXPECT_EQ(must(find_latest_checkpoint(dir / "run", ear.runtime)), dir / "run");
  save(dir / "run/later", mark(2, "2026-01-01T00:00:00"), ear.runtime);
  EXPECT_EQ(latest(dir / "run", ear.runtime), "later");
}

TEST(Discovery, SkipsADamagedRecordInItsPlaceWithALogEntry) {
  Ear ear;
  TempDir dir;
  save(dir / "old", mark(1, "2026-01-01T00:00:00"), ear.runtime);
  save(dir / "new", mark(2, "2026-01-01T00:00:00"), ear.runtime);
  testing::write_file(dir / "new/cairn.json", "{");
  EXPECT_EQ(latest(dir.path(), ear.runtime), "old");
  ASSERT_EQ(ear.entries.size(), 1U);
  EXPECT_THAT(ear.entries[0].message, HasSubstr("new was skipped"));
}

TEST(Discovery, SkipsATornCheckpointWithALogEntry) {
  Ear ear;
  TempDir dir;
  save(dir / "old", mark(1, "2026-01-01T00:00:00"), ear.runtime);
  save(dir / "new", mark(2, "2026-01-01T00:00:00"), ear.runtime);
  // What a writer leaves that began before this mark was there, and died.
  std::filesystem::create_directories(dir / "new/.cairn-0123456789abcdef0123456789abcdef/new");
  testing::write_file(dir / "new/.cairn-0123456789abcdef0123456789abcdef/attempt.json",
                      R"({"attempt": "0123456789abcdef0123456789abcdef", "host": "h",
                          "process": 1, "boot_id": "b", "started": "2026-01-01T00:00:00",
                          "ranks": 1, "run_id": "", "generation": 0, "mark_sha256": null,
                          "prefixes": []})");
  const auto entries = must(list_run(dir.path(), ear.runtime));
  EXPECT_TRUE(entry_named(entries, "new").torn) << "the file above is no attempt.json any more";
  EXPECT_EQ(latest(dir.path(), ear.runtime), "old");
  ASSERT_EQ(ear.entries.size(), 1U);
  EXPECT_EQ(ear.entries[0].level, LogLevel::kWarning);
  EXPECT_THAT(ear.entries[0].message, HasSubstr("unfinished save"));
  // Had it given up instead, it would be no one's concern.
  testing::write_file(dir / "new/.cairn-0123456789abcdef0123456789abcdef/outcome.json",
                      R"({"outcome": "abandon", "failure": null})");
  EXPECT_EQ(latest(dir.path(), ear.runtime), "new");
}

TEST(Discovery, SkipsWhatLostAFileOrItsManifest) {
  Ear ear;
  TempDir dir;
  for (int step = 1; step <= 3; ++step) {
    save(dir / ("run-" + std::to_string(step)), mark(step, "2026-01-01T00:00:00"), ear.runtime);
  }
  std::filesystem::remove(dir / "run-3/model/w/0.0");
  std::filesystem::remove(dir / "run-2/model/.cairn.json");
  EXPECT_EQ(latest(dir.path(), ear.runtime), "run-1");
  ASSERT_EQ(ear.entries.size(), 2U);
  EXPECT_THAT(ear.entries[0].message, HasSubstr("run-3/model/w/0.0 is missing"));
}

TEST(Discovery, ADamagedRecordIsListedWithItsProblem) {
  Ear ear;
  TempDir dir;
  save(dir / "run-1", mark(1, "2026-01-01T00:00:00"), ear.runtime);
  testing::write_file(dir / "run-1/cairn.json", "{");
  const auto entries = must(list_run(dir.path(), ear.runtime));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_NE(entries[0].problem, "");
  EXPECT_EQ(latest(dir.path(), ear.runtime), "none");
}

TEST(Discovery, FollowsLinksToCheckpointsAndLooksPastWhatIsNone) {
  Ear ear;
  TempDir dir;
  save(dir / "elsewhere/run-7", mark(7, "2026-01-01T00:00:00"), ear.runtime);
  std::filesystem::create_directories(dir / "base/.hidden");
  std::filesystem::create_directories(dir / "base/notes");
  testing::write_file(dir / "base/notes.txt", "no checkpoint");
  std::filesystem::create_symlink(dir / "elsewhere/run-7", dir / "base/run-7");
  std::filesystem::create_symlink(dir / "nowhere", dir / "base/run-8");
  EXPECT_THAT(names(must(list_run(dir / "base", ear.runtime))), ElementsAre("run-7"));
  EXPECT_EQ(latest(dir / "base", ear.runtime), "run-7");
}

TEST(Discovery, NamesWhatItDoesNotResumeFrom) {
  TempDir dir;
  std::vector<std::string> log;
  Runtime runtime({.threads = 1, .log = [&](const LogEntry& entry) {
                     log.push_back(std::string(entry.event) + " " + entry.message);
                   }});
  const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {2, 3}))}});
  must(save_tree(tree, dir / "by-hand", {}, runtime));
  EXPECT_EQ(must(find_latest_checkpoint(dir.path(), runtime)), std::nullopt);
  ASSERT_EQ(log.size(), 1U);
  EXPECT_THAT(log.front(), AllOf(HasSubstr("discovery/unmarked"), HasSubstr("by-hand")));
  const SaveInternals marked{.mark = dump_mark(make_mark(3, false, runtime.clock().wall()))};
  must(save_checkpoint({{"", tree}}, dir / "3", {}, runtime, &marked));
  EXPECT_EQ(must(find_latest_checkpoint(dir.path(), runtime)), dir / "3");
  EXPECT_EQ(log.size(), 1U);
}

TEST(Discovery, ABaseThatIsEmptyOrNotThereHasNoLatest) {
  Ear ear;
  TempDir dir;
  EXPECT_EQ(latest(dir.path(), ear.runtime), "none");
  EXPECT_EQ(latest(dir / "nowhere", ear.runtime), "none");
  EXPECT_EQ(reason(list_run(dir / "nowhere", ear.runtime)), "fs/not-found");
  EXPECT_TRUE(ear.entries.empty());
}

}  // namespace
}  // namespace cairn
