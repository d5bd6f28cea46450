// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/memory/memory_store.h"

#include <gtest/gtest.h>

namespace cairn::storage {
namespace {

TEST(MemoryStore, IsSharedByNameAndSeenBelowADirectory) {
  auto whole = open_memory_store("shared-by-name", "");
  auto below = open_memory_store("shared-by-name", "run/7/");
  ASSERT_TRUE(below->put("w/0.0", as_bytes("abc")));
  auto bytes = read_all(*whole, "run/7/w/0.0", 100);
  ASSERT_TRUE(bytes) << bytes.error().to_string();
  EXPECT_EQ(as_text(bytes->bytes()), "abc");
  EXPECT_EQ(below->describe("w/0.0"), "memory://shared-by-name/run/7/w/0.0");
  EXPECT_FALSE(open_memory_store("another", "")->stat("run/7/w/0.0"));
}

}  // namespace
}  // namespace cairn::storage
