// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/posix.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cairn/base/buffer.h"
#include "cairn/storage/local/file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::must;
using cairn::testing::read_file;
using cairn::testing::reason;
using cairn::testing::TempDir;
using cairn::testing::write_file;

constexpr OpenOptions kNew{
    .access = OpenOptions::Access::kReadWrite, .create = true, .exclusive = true};
constexpr OpenOptions kExisting{.access = OpenOptions::Access::kReadWrite};
constexpr OpenOptions kDirectory{.access = OpenOptions::Access::kDirectory};

class Posix : public ::testing::Test {
 protected:
  std::unique_ptr<File> open(const std::string& path, const OpenOptions& options = {}) {
    return must(fs_.open(root_.get(), path, options));
  }
  std::string read(File& file, std::uint64_t offset, std::size_t size) {
    std::string text(size, '?');
    text.resize(must(file.read_at(offset, std::as_writable_bytes(std::span(text)))));
    return text;
  }

  TempDir dir_;
  FileSystem& fs_ = posix_file_system();
  std::unique_ptr<File> root_ = must(fs_.open(nullptr, dir_.path(), kDirectory));
};

TEST_F(Posix, ReadsAndWritesAtOffsets) {
  const auto file = open("f", kNew);
  must(file->write_at(3, as_bytes("defg")));
  must(file->write_at(0, as_bytes("abc")));
  EXPECT_EQ(read(*file, 2, 3), "cde");
  EXPECT_EQ(read(*file, 5, 100), "fg");
  EXPECT_EQ(read(*file, 100, 1), "");
  must(file->truncate(4));
  must(file->sync());
  EXPECT_EQ(read_file(dir_ / "f"), "abcd");
  EXPECT_EQ(reason(file->write_at(~std::uint64_t{0}, as_bytes("x"))), "fs/file-too-large");
  EXPECT_EQ(reason(file->truncate(~std::uint64_t{0})), "fs/file-too-large");
}

TEST_F(Posix, AllocatesWithoutChangingWhatIsThere) {
  const auto file = open("f", kNew);
  must(file->write_at(0, as_bytes("abc")));
  must(file->allocate(0));
  must(file->allocate(2));
  EXPECT_EQ(read_file(dir_ / "f"), "abc");
  must(file->allocate(1 << 20));
  const FileInfo info = must(file->info());
  EXPECT_TRUE(info.size == (1 << 20) || info.size == 3) << info.size;
  EXPECT_EQ(read(*file, 0, 3), "abc");
}

TEST_F(Posix, TellsFilesApart) {
  const auto file = open("f", kNew);
  must(file->write_at(0, as_bytes("abc")));
  must(fs_.link(root_.get(), "f", root_.get(), "same"));
  must(fs_.make_directory(root_.get(), "d"));
  std::filesystem::create_symlink("f", dir_ / "l");
  const FileInfo info = must(file->info());
  EXPECT_EQ(info.kind, FileKind::kFile);
  EXPECT_EQ(info.size, 3);
  EXPECT_EQ(info.links, 2);
  EXPECT_EQ(must(fs_.stat(root_.get(), "same", false)).inode, info.inode);
  EXPECT_EQ(must(fs_.stat(root_.get(), "l", true)).inode, info.inode);
  EXPECT_EQ(must(fs_.stat(root_.get(), "l", false)).kind, FileKind::kSymlink);
  EXPECT_EQ(must(fs_.stat(nullptr, dir_ / "d", false)).kind, FileKind::kDirectory);
  EXPECT_EQ(must(fs_.stat(root_.get(), ".", false)).inode, must(root_->info()).inode);
}

TEST_F(Posix, ListsNamesInOrderAndMoreThanOnce) {
  for (const char* name : {"b", "a", ".hidden"}) open(name, kNew);
  must(fs_.make_directory(root_.get(), "d"));
  std::filesystem::create_symlink("a", dir_ / "c");
  ASSERT_EQ(::mkfifo((dir_ / "p").c_str(), 0600), 0);
  for (int i = 0; i < 2; ++i) {
    std::string found;
    for (const DirEntry& entry : must(fs_.list(*root_))) {
      found += entry.name + std::to_string(static_cast<int>(entry.kind)) + " ";
    }
    EXPECT_EQ(found, ".hidden0 a0 b0 c2 d1 p3 ");
  }
  EXPECT_EQ(reason(fs_.list(*open("a"))), "fs/not-a-directory");
}

TEST_F(Posix, GivesAReasonForEveryErrorAndNamesThePath) {
  open("f", kNew);
  must(fs_.make_directory(root_.get(), "d"));
  must(fs_.make_directory(root_.get(), "d/e"));
  const File* at = root_.get();
  const std::string long_name(300, 'x');
  EXPECT_EQ(reason(fs_.open(at, "missing", {})), "fs/not-found");
  EXPECT_EQ(reason(fs_.open(at, "f", kNew)), "fs/exists");
  EXPECT_EQ(reason(fs_.open(at, "d", kExisting)), "fs/is-a-directory");
  EXPECT_EQ(reason(fs_.open(at, "f", kDirectory)), "fs/not-a-directory");
  EXPECT_EQ(reason(fs_.open(at, "f/below", {})), "fs/not-a-directory");
  EXPECT_EQ(reason(fs_.open(at, long_name, kNew)), "fs/name-too-long");
  EXPECT_EQ(reason(fs_.make_directory(at, "d")), "fs/exists");
  EXPECT_EQ(reason(fs_.make_directory(at, "x/y")), "fs/not-found");
  EXPECT_EQ(reason(fs_.remove_file(at, "d")), "fs/is-a-directory");
  EXPECT_EQ(reason(fs_.remove_file(at, "missing")), "fs/not-found");
  EXPECT_EQ(reason(fs_.remove_directory(at, "d")), "fs/not-empty");
  EXPECT_EQ(reason(fs_.remove_directory(at, "f")), "fs/not-a-directory");
  EXPECT_EQ(reason(fs_.rename(at, "missing", at, "x")), "fs/not-found");
  EXPECT_EQ(reason(fs_.rename(at, "f", at, "d")), "fs/is-a-directory");
  EXPECT_EQ(reason(fs_.link(at, "f", at, "d")), "fs/exists");
  must(fs_.make_directory(at, "g"));
  EXPECT_EQ(reason(fs_.rename(at, "g", at, "d")), "fs/not-empty");
  EXPECT_EQ(fs_.open(at, "missing", {}).error().where(), dir_ / "missing");
  EXPECT_EQ(reason(fs_.rename(nullptr, dir_ / "f", nullptr, "/proc/cairn-elsewhere")),
            "fs/cross-device");
}

TEST_F(Posix, RefusesLinksOnTheWayOfEveryCall) {
  std::filesystem::create_directories(dir_ / "real/deep");
  write_file(dir_ / "real/f", "theirs");
  write_file(dir_ / "real/deep/f", "theirs");
  std::filesystem::create_directory(dir_ / "real/empty");
  std::filesystem::create_directory_symlink("real", dir_ / "link");
  std::filesystem::create_directory_symlink("deep", dir_ / "real/inner");
  write_file(dir_ / "mine", "x");
  const File* at = root_.get();
  for (const std::string way : {"link/", "real/inner/", "link/deep/"}) {
    EXPECT_EQ(reason(fs_.open(at, way + "f", {})), "fs/symlink");
    EXPECT_EQ(reason(fs_.open(at, way + "new", kNew)), "fs/symlink");
    EXPECT_EQ(reason(fs_.open(at, way, kDirectory)), "fs/symlink");
    EXPECT_EQ(reason(fs_.stat(at, way + "f", false)), "fs/symlink");
    EXPECT_EQ(reason(fs_.make_directory(at, way + "new")), "fs/symlink");
    EXPECT_EQ(reason(fs_.remove_file(at, way + "f")), "fs/symlink");
    EXPECT_EQ(reason(fs_.remove_directory(at, way + "empty")), "fs/symlink");
    EXPECT_EQ(reason(fs_.rename(at, way + "f", at, "new")), "fs/symlink");
    EXPECT_EQ(reason(fs_.rename(at, "mine", at, way + "new")), "fs/symlink");
    EXPECT_EQ(reason(fs_.link(at, way + "f", at, "new")), "fs/symlink");
    EXPECT_EQ(reason(fs_.link(at, "mine", at, way + "new")), "fs/symlink");
    EXPECT_TRUE(fs_.open(at, way + "f", {.follow_links = true}));
    EXPECT_TRUE(fs_.stat(at, way + "f", true));
  }
  EXPECT_EQ(read_file(dir_ / "real/f") + read_file(dir_ / "real/deep/f"), "theirstheirs");
}

TEST_F(Posix, StaysBelowTheDirectoryGiven) {
  must(fs_.make_directory(root_.get(), "d"));
  const auto below = open("d", kDirectory);
  const File* at = below.get();
  write_file(dir_ / "f", "theirs");
  const std::string absolute = dir_ / "f";
  for (const std::string& path : {std::string("../f"), absolute, std::string("x/../../f")}) {
    EXPECT_EQ(reason(fs_.open(at, path, {})), "fs/outside") << path;
    EXPECT_EQ(reason(fs_.remove_file(at, path)), "fs/outside") << path;
    EXPECT_EQ(reason(fs_.rename(at, path, at, "mine")), "fs/outside") << path;
    EXPECT_EQ(reason(fs_.make_directory(at, path)), "fs/outside") << path;
  }
  EXPECT_EQ(reason(fs_.remove_directory(at, "..")), "fs/outside");
  EXPECT_EQ(read_file(dir_ / "f"), "theirs");
}

TEST_F(Posix, FollowsTheUsersOwnPathButForItsLastComponent) {
  std::filesystem::create_directory(dir_ / "real");
  write_file(dir_ / "real/f", "x");
  std::filesystem::create_directory_symlink("real", dir_ / "link");
  std::filesystem::create_symlink("f", dir_ / "real/l");
  EXPECT_TRUE(fs_.open(nullptr, dir_ / "link/f", {}));
  EXPECT_EQ(reason(fs_.open(nullptr, dir_ / "link", kDirectory)), "fs/symlink");
  EXPECT_EQ(reason(fs_.open(nullptr, dir_ / "real/l", {})), "fs/symlink");
  EXPECT_EQ(reason(fs_.open(nullptr, dir_ / "real/f", kDirectory)), "fs/not-a-directory");
  EXPECT_TRUE(fs_.open(nullptr, dir_ / "real/l", {.follow_links = true}));
}

TEST_F(Posix, LocksBelongToTheOpenFile) {
  auto first = open("lock", kNew);
  const auto second = open("lock", kExisting);
  EXPECT_TRUE(must(first->try_lock()));
  EXPECT_TRUE(must(first->try_lock()));
  EXPECT_FALSE(must(second->try_lock()));
  // With the older kind of lock this close would release the first one's.
  open("lock", kExisting);
  EXPECT_FALSE(must(second->try_lock()));
  first.reset();
  EXPECT_TRUE(must(second->try_lock()));
}

TEST_F(Posix, LooksForALockWithoutTakingIt) {
  auto holder = open("lock", kNew);
  const auto looker = open("lock");
  EXPECT_FALSE(must(looker->is_locked_elsewhere()));
  EXPECT_TRUE(must(holder->try_lock()));
  EXPECT_TRUE(must(looker->is_locked_elsewhere()));
  EXPECT_FALSE(must(holder->is_locked_elsewhere()));
  holder.reset();
  EXPECT_FALSE(must(looker->is_locked_elsewhere()));
  EXPECT_TRUE(must(open("lock", kExisting)->try_lock()));
}

TEST_F(Posix, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(must(open("pipe")->info()).kind, FileKind::kOther);
}

TEST_F(Posix, ClosesWhatItOpens) {
  const auto count = [] {
    return std::ranges::distance(std::filesystem::directory_iterator("/proc/self/fd"));
  };
  must(fs_.make_directory(root_.get(), "d"));
  const auto before = count();
  open("d/f", kNew);
  must(fs_.list(*root_));
  must(fs_.rename(root_.get(), "d/f", root_.get(), "d/g"));
  must(fs_.stat(root_.get(), "d/g", false));
  EXPECT_FALSE(fs_.open(root_.get(), "d/missing", {}));
  EXPECT_EQ(count(), before);
}

TEST_F(Posix, ReportsSpaceAndSyncs) {
  const SpaceInfo space = must(fs_.space(*root_));
  EXPECT_GT(space.total, 0);
  EXPECT_GE(space.total, space.available);
  EXPECT_FALSE(space.type.empty());
  must(root_->sync());
  EXPECT_EQ(reason(root_->sync_file_system()),
            root_->can_sync_file_system() ? "none" : "fs/unsupported");
}

TEST_F(Posix, TransfersDirectlyWhereTheFileSystemCan) {
  OpenOptions options = kNew;
  options.direct = true;
  auto file = fs_.open(root_.get(), "direct", options);
  if (!file) {
    EXPECT_EQ(reason(file), "fs/unsupported");
    GTEST_SKIP() << "no direct I/O on the file system of " << dir_.path();
  }
  Buffer page = must(Buffer::allocate(8192));
  std::ranges::fill(page.mutable_bytes(), std::byte{'x'});
  must((*file)->write_at(0, page.bytes()));
  must((*file)->truncate(5000));
  std::ranges::fill(page.mutable_bytes(), std::byte{0});
  EXPECT_EQ(must((*file)->read_at(0, page.mutable_bytes())), 5000);
  EXPECT_EQ(as_text(page.bytes()).substr(0, 5000), std::string(5000, 'x'));
}

TEST(PosixOnASmallDisk, SaysThatThereIsNoSpaceAndHowMuchWasAsked) {
  const TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "mounting a tmpfs needs root";
  }
  const std::unique_ptr<const char, int (*)(const char*)> mounted(
      dir.path().c_str(), +[](const char* path) { return ::umount2(path, MNT_DETACH); });
  FileSystem& fs = posix_file_system();
  const auto root = must(fs.open(nullptr, dir.path(), kDirectory));
  EXPECT_EQ(must(fs.space(*root)).type, "tmpfs");
  const auto file = must(fs.open(root.get(), "f", kNew));
  auto written = file->write_at(0, as_bytes(std::string(1 << 20, 'x')));
  EXPECT_EQ(reason(written), "storage/no-space");
  EXPECT_NE(written.error().message().find("1.0 MiB"), std::string::npos)
      << written.error().message();
  EXPECT_EQ(written.error().code(), Code::kResourceExhausted);
  const auto other = must(fs.open(root.get(), "g", kNew));
  EXPECT_EQ(reason(other->allocate(1 << 20)), "storage/no-space");
}

}  // namespace
}  // namespace cairn::storage
