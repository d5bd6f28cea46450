// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/local_store.h"

#include <gtest/gtest.h>

#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

TEST(LocalStore, PutsAndReads) {
  cairn::testing::TempDir dir;
  for (const bool is_private : {false, true}) {
    auto store = open_local_store(posix_file_system(), dir / "a/b",
                                  {.create_root = true, .private_directory = is_private});
    ASSERT_TRUE(store) << store.error().to_string();
    for (const std::string& text : {std::string("abc"), std::string()}) {
      auto put = (*store)->put("x/y/z", as_bytes(text));
      ASSERT_TRUE(put) << put.error().to_string();
      auto read = read_all(**store, "x/y/z", 10);
      ASSERT_TRUE(read) << read.error().to_string();
      EXPECT_EQ(as_text(read->bytes()), text);
    }
    auto done = (*store)->sync();
    ASSERT_TRUE(done) << done.error().to_string();
    auto keys = (*store)->list("", true);
    ASSERT_TRUE(keys) << keys.error().to_string();
    ASSERT_EQ(keys->size(), 1);
    EXPECT_EQ((*keys)[0].key, "x/y/z");
  }
}

}  // namespace
}  // namespace cairn::storage
