// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/pinned_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/storage/memory/memory_store.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::must;

std::shared_ptr<Store> local(const testing::TempDir& directory) {
  return must(open_local_store(posix_file_system(), directory.path()));
}

void put(Store& store, std::string_view key, std::string_view text) {
  must(store.put(key, as_bytes(text)));
}

Result<std::string> text_of(Store& store, std::string_view key) {
  CAIRN_TRY_ASSIGN(const Buffer bytes, read_all(store, key, 100));
  return std::string(as_text(bytes.bytes()));
}

TEST(PinnedStore, ReadsWhatItOpenedAfterARename) {
  const testing::TempDir directory;
  const auto store = local(directory);
  put(*store, "a", "old");
  const auto pinned = pin_objects(store);
  EXPECT_EQ(*text_of(*pinned, "a"), "old");
  put(*store, "a", "new");
  EXPECT_EQ(*text_of(*pinned, "a"), "old");
  must(store->remove("a"));
  EXPECT_EQ(*text_of(*pinned, "a"), "old");
}

TEST(PinnedStore, RefusesWhatChangedInPlace) {
  const testing::TempDir directory;
  const auto store = local(directory);
  put(*store, "a", "old");
  const auto pinned = pin_objects(store);
  const auto reader = must(pinned->open("a"));
  const int fd = ::open((directory.path() + "/a").c_str(), O_WRONLY | O_TRUNC);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::write(fd, "longer", 6), 6);
  ASSERT_EQ(::close(fd), 0);
  Buffer out = must(Buffer::allocate(3));
  const auto read = reader->read_at(0, out.mutable_bytes());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().reason(), "storage/replaced");
  const auto again = pinned->open("a");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().reason(), "storage/replaced");
}

TEST(PinnedStore, RefusesWhatItCannotHoldOnceItIsReplaced) {
  const std::shared_ptr<Store> store = make_memory_store();
  const auto pinned = pin_objects(store);
  for (std::size_t i = 0; i <= kMostHeldObjects; ++i) {
    put(*store, fmt::format("{}", i), "old");
    EXPECT_EQ(*text_of(*pinned, fmt::format("{}", i)), "old");
  }
  const std::string last = fmt::format("{}", kMostHeldObjects);
  EXPECT_EQ(*text_of(*pinned, last), "old");
  for (std::size_t i = 0; i <= kMostHeldObjects; ++i) put(*store, fmt::format("{}", i), "new");
  EXPECT_EQ(*text_of(*pinned, "0"), "old");
  const auto replaced = text_of(*pinned, last);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().reason(), "storage/replaced");
}

}  // namespace
}  // namespace cairn::storage
