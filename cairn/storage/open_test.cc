// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/open.h"

#include <gtest/gtest.h>

#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn::storage {
namespace {

using cairn::testing::must;
using cairn::testing::reason;

TEST(OpenStore, OpensPathsAndMemory) {
  const cairn::testing::TempDir dir;
  const auto local = must(open_store(must(parse_uri(dir.path()))));
  EXPECT_TRUE(local->capabilities().directories);
  EXPECT_EQ(local->describe("k"), dir / "k");
  const auto memory = must(open_store(must(parse_uri("memory://open/a/b"))));
  EXPECT_EQ(memory->describe("k"), "memory://open/a/b/k");
}

TEST(OpenStore, MakesADirectoryOnlyWhenAskedAndOnTheFileSystemGiven) {
  cairn::testing::LossyFileSystem fs;
  const Uri uri = must(parse_uri("/run/1"));
  EXPECT_EQ(reason(open_store(uri, {.file_system = &fs})), "storage/not-found");
  must(open_store(uri, {.file_system = &fs, .create = true}));
  EXPECT_TRUE(fs.snapshot().contains("/run/1/"));
}

TEST(OpenStore, SaysWhichSchemesItDoesNotHave) {
  for (const char* scheme : {"gs", "s3"}) {
    auto store = open_store({.scheme = scheme, .authority = "bucket", .path = "a"});
    EXPECT_EQ(reason(store), "storage/not-built");
    EXPECT_EQ(store.error().code(), Code::kUnimplemented);
    EXPECT_EQ(store.error().where(), std::string(scheme) + "://bucket/a");
  }
  auto store = open_store({.scheme = "ftp", .authority = "host", .path = "a"});
  EXPECT_EQ(reason(store), "storage/unknown-scheme");
}

}  // namespace
}  // namespace cairn::storage
