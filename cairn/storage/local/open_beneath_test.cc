// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/open_beneath.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using Open = UniqueFd (*)(int, const char*, int);

class OpenBeneath : public ::testing::TestWithParam<Open> {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_ / "root/a/b");
    std::filesystem::create_directories(dir_ / "outside");
    cairn::testing::write_file(dir_ / "root/a/b/file", "x");
    cairn::testing::write_file(dir_ / "outside/file", "x");
    std::filesystem::create_directory_symlink("a", dir_ / "root/link");
    std::filesystem::create_directory_symlink("b", dir_ / "root/a/link");
    std::filesystem::create_symlink("file", dir_ / "root/a/b/link");
    std::filesystem::create_symlink("nothing", dir_ / "root/a/b/dangling");
    root_ = UniqueFd(::open((dir_ / "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!GetParam()(root_.get(), ".", O_PATH).valid() && (errno == ENOSYS || errno == EPERM)) {
      GTEST_SKIP() << "this kernel has no openat2";
    }
  }
  /// 0, or the errno.
  int open(const char* path, int flags = O_RDONLY) {
    const UniqueFd fd = GetParam()(root_.get(), path, flags);
    if (!fd.valid()) return errno;
    EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0) << path;
    return 0;
  }

  cairn::testing::TempDir dir_;
  UniqueFd root_;
};

TEST_P(OpenBeneath, OpensFilesAndDirectories) {
  EXPECT_EQ(open("a/b/file"), 0);
  EXPECT_EQ(open("./a//b/./file"), 0);
  EXPECT_EQ(open("a/b", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(open("a/", O_PATH | O_DIRECTORY), 0);
  EXPECT_EQ(open(".", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(open("a/b/new", O_RDWR | O_CREAT | O_EXCL), 0);
  EXPECT_TRUE(std::filesystem::exists(dir_ / "root/a/b/new"));
}

TEST_P(OpenBeneath, MeetsNoLinkInAnyComponent) {
  for (const char* path : {"link/b/file", "a/link/file", "a/b/link", "a/b/dangling", "link"}) {
    EXPECT_EQ(open(path), ELOOP) << path;
    EXPECT_EQ(open(path, O_RDWR | O_CREAT), ELOOP) << path;
    EXPECT_EQ(open(path, O_RDONLY | O_DIRECTORY), ELOOP) << path;
  }
  EXPECT_EQ(open("a/b/dangling", O_RDWR | O_CREAT | O_EXCL), EEXIST);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "root/a/b/nothing"));
}

TEST_P(OpenBeneath, StaysBelow) {
  const std::string absolute = dir_ / "outside/file";
  for (const std::string path : {"../outside/file", "a/../../outside/file", "a/..", "..", "/"}) {
    EXPECT_EQ(open(path.c_str()), EXDEV) << path;
  }
  EXPECT_EQ(open(absolute.c_str()), EXDEV);
}

TEST_P(OpenBeneath, SaysWhatElseIsWrong) {
  EXPECT_EQ(open("missing"), ENOENT);
  EXPECT_EQ(open("missing/file"), ENOENT);
  EXPECT_EQ(open(""), ENOENT);
  EXPECT_EQ(open("a/b/file/below"), ENOTDIR);
  EXPECT_EQ(open("a/b/file", O_RDONLY | O_DIRECTORY), ENOTDIR);
  EXPECT_EQ(open("a/b/file", O_RDWR | O_CREAT | O_EXCL), EEXIST);
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenBeneath,
                         ::testing::Values(&open_beneath, &open_beneath_at_once,
                                           &open_beneath_by_steps),
                         [](const auto& way) {
                           return std::to_array({"chosen", "at_once", "by_steps"})[way.index];
                         });

}  // namespace
}  // namespace cairn::storage
