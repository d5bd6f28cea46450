// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/memory/memory_store.h"

#include <gtest/gtest.h>

#include "cairn/testing/must.h"
#include "cairn/testing/store_suite.h"

namespace cairn::storage {
namespace {

using cairn::testing::must;

const bool kRegistered =
    cairn::testing::register_store_suite("MemoryStore", [] { return make_memory_store(); });

TEST(MemoryStore, IsSharedByNameAndSeenBelowADirectory) {
  auto whole = open_memory_store("shared-by-name", "");
  auto below = open_memory_store("shared-by-name", "run/7/");
  must(below->put("w/0.0", as_bytes("abc")));
  EXPECT_EQ(as_text(must(read_all(*whole, "run/7/w/0.0", 100)).bytes()), "abc");
  EXPECT_EQ(below->describe("w/0.0"), "memory://shared-by-name/run/7/w/0.0");
  must(whole->put("run/8/w", as_bytes("x")));
  const auto keys = must(below->list("", true));
  ASSERT_EQ(keys.size(), 1);
  EXPECT_EQ(keys[0].key, "w/0.0");
  EXPECT_FALSE(open_memory_store("another", "")->stat("run/7/w/0.0"));
}

}  // namespace
}  // namespace cairn::storage
