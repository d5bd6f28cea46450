// SPDX-License-Identifier: Apache-2.0
// Files of ours that are second names of other people's files.
#include "cairn/commit/posix/directory.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/manifest/names.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;
using testing::must;

class HardLinked : public ::testing::Test {
 protected:
  HardLinked() { testing::write_file(dir_ / "theirs", kText); }
  void link_to(const std::string& name) { fs::create_hard_link(dir_ / "theirs", dir_ / name); }
  std::string theirs() const { return testing::read_file(dir_ / "theirs"); }

  const std::string kText = std::string(1000, 't');
  const testing::TempDir dir_;
  const Directory directory_ =
      must(Directory::open(storage::posix_file_system(), testing::local(dir_.path()), false));
  testing::ManualClock clock_;
};

TEST_F(HardLinked, LockIsTakenAndNotWritten) {
  link_to(std::string(kLockName));
  const auto lock = must(DirectoryLock::acquire(directory_, clock_, std::chrono::seconds(0)));
  EXPECT_EQ(testing::reason(DirectoryLock::acquire(directory_, clock_, std::chrono::seconds(0))),
            "commit/lock-timeout");
  EXPECT_EQ(theirs(), kText);
}

TEST_F(HardLinked, FileIsReplacedAndNotWritten) {
  link_to("aside");
  must(directory_.write_synced("aside", "ours"));
  EXPECT_EQ(testing::read_file(dir_ / "aside"), "ours");
  link_to("other");
  must(directory_.replace("name", "other", "ours"));
  EXPECT_EQ(testing::read_file(dir_ / "name"), "ours");
  EXPECT_EQ(theirs(), kText);
}

TEST_F(HardLinked, LockOfOneNameSaysWhoHasIt) {
  must(DirectoryLock::acquire(directory_, clock_, std::chrono::seconds(0)));
  EXPECT_TRUE(testing::read_file(dir_ / std::string(kLockName)).starts_with("process "));
}

}  // namespace
}  // namespace cairn
