// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/probe.h"

#include <cerrno>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/storage/local/posix.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::LossyFileSystem;
using cairn::testing::must;
using cairn::testing::reason;

std::vector<std::string> names(const FileSystemReport& report) {
  std::vector<std::string> out;
  for (const Finding& finding : report.findings) out.emplace_back(finding.name);
  return out;
}

const Finding& find(const FileSystemReport& report, std::string_view name) {
  for (const Finding& finding : report.findings) {
    if (finding.name == name) return finding;
  }
  throw std::runtime_error("no finding of that name");
}

TEST(Probe, FindsWhatTheFileSystemOfTheTestsCanDo) {
  const cairn::testing::TempDir dir;
  const FileSystemReport report = must(probe_file_system(posix_file_system(), dir.path()));
  EXPECT_THAT(names(report), ::testing::ElementsAre("locks", "exclusive-create", "directory-rename",
                                                    "directory-sync", "batch-sync", "hard-links",
                                                    "case-sensitive", "direct-io", "name-length"));
  EXPECT_EQ(find(report, "directory-sync").good, !report.space.in_memory);
  for (const char* name :
       {"locks", "exclusive-create", "directory-rename", "hard-links", "case-sensitive"}) {
    EXPECT_EQ(find(report, name).value, "yes") << name;
  }
  EXPECT_EQ(find(report, "name-length").value, "255 bytes");
  EXPECT_GT(report.space.total, 0);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Probe, StepsOverWhatAnEarlierOneLeft) {
  LossyFileSystem fs;
  fs.crash_after(30);
  EXPECT_TRUE(probe_file_system(fs, "/").has_value()) << "failures are findings";
  const auto left = fs.after_kill();
  const auto before = left->snapshot();
  EXPECT_FALSE(before.empty());
  EXPECT_TRUE(find(must(probe_file_system(*left, "/")), "locks").good);
  EXPECT_EQ(left->snapshot(), before) << "it removes its own only";
}

TEST(Probe, TurnsFailuresIntoFindings) {
  LossyFileSystem whole;
  must(probe_file_system(whole, "/"));
  const std::map<std::string, std::string> caught = {{"lock", "locks"},
                                                     {"rename", "directory-rename"},
                                                     {"sync", "directory-sync"},
                                                     {"link", "hard-links"}};
  const auto operations = whole.operations();
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto row = caught.find(operations[i].name);
    if (row == caught.end()) continue;
    LossyFileSystem fs;
    fs.fail_at(i, EACCES);
    const FileSystemReport report = must(probe_file_system(fs, "/"));
    EXPECT_FALSE(find(report, row->second).good) << operations[i].name;
    EXPECT_THAT(find(report, row->second).value, ::testing::StartsWith("no"));
    EXPECT_TRUE(fs.snapshot().empty());
  }
}

TEST(Probe, RefusesAPlaceWhereNothingCanBeMade) {
  LossyFileSystem fs;
  EXPECT_EQ(reason(probe_file_system(fs, "/missing")), "fs/not-found");
  fs.fail_at(fs.operations().size() + 2, EROFS);
  EXPECT_EQ(reason(probe_file_system(fs, "/")), "fs/read-only");
}

TEST(Probe, PromisesNothingThatLiesInMemory) {
  if (!std::filesystem::exists("/dev/shm")) GTEST_SKIP() << "no tmpfs";
  const FileSystemReport report = must(probe_file_system(posix_file_system(), "/dev/shm"));
  if (!report.space.in_memory) GTEST_SKIP() << "/dev/shm is a " << report.space.type;
  for (const char* name : {"directory-sync", "batch-sync"}) {
    EXPECT_FALSE(find(report, name).good) << name;
    EXPECT_EQ(find(report, name).value, "no (in memory)") << name;
    EXPECT_THAT(find(report, name).meaning, ::testing::HasSubstr("power cut")) << name;
  }
  EXPECT_TRUE(find(report, "locks").good);
}

}  // namespace
}  // namespace cairn::storage
