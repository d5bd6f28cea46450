// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/uri.h"

#include <string>

#include <gtest/gtest.h>

namespace cairn {
namespace {

using namespace std::string_literals;

TEST(Uri, ReadsPathsAndUrls) {
  const struct {
    const char* text;
    Uri uri;
    const char* again;  // as to_string writes it
  } kTable[] = {
      {"/a/b", {"file", "", "/a/b"}, "/a/b"},
      {"a/b", {"file", "", "a/b"}, "a/b"},
      {".", {"file", "", "."}, "."},
      {"a:b/c", {"file", "", "a:b/c"}, "a:b/c"},
      {"dir/gs://x", {"file", "", "dir/gs://x"}, "dir/gs://x"},
      {"file:///a/b", {"file", "", "/a/b"}, "/a/b"},
      {"FILE://localhost/a", {"file", "", "/a"}, "/a"},
      {"file:///", {"file", "", "/"}, "/"},
      {"gs://bucket/a/b", {"gs", "bucket", "a/b"}, "gs://bucket/a/b"},
      {"GS://Bucket/A", {"gs", "Bucket", "A"}, "gs://Bucket/A"},
      {"s3://bucket", {"s3", "bucket", ""}, "s3://bucket"},
      {"s3://bucket/", {"s3", "bucket", ""}, "s3://bucket"},
      {"s3://bucket//a", {"s3", "bucket", "a"}, "s3://bucket/a"},
      {"s3://bucket/a//b/", {"s3", "bucket", "a//b/"}, "s3://bucket/a//b/"},
      {"memory://", {"memory", "", ""}, "memory://"},
      {"memory://x/a", {"memory", "x", "a"}, "memory://x/a"},
      {"memory:///a", {"memory", "", "a"}, "memory:///a"},
      {"gs+v1.x-y://b/%2e", {"gs+v1.x-y", "b", "%2e"}, "gs+v1.x-y://b/%2e"},
  };
  for (const auto& row : kTable) {
    const Result<Uri> uri = parse_uri(row.text);
    ASSERT_TRUE(uri) << row.text;
    EXPECT_EQ(*uri, row.uri) << row.text;
    EXPECT_EQ(uri->to_string(), row.again);
    EXPECT_EQ(*parse_uri(uri->to_string()), row.uri) << row.text;
  }
}

TEST(Uri, RefusesWhatNamesNoPlace) {
  const std::pair<std::string, const char*> kTable[] = {{"", "uri/empty"},
                                                        {"file://", "uri/empty"},
                                                        {"://a", "uri/bad-scheme"},
                                                        {"1a://b/c", "uri/bad-scheme"},
                                                        {"a b://c", "uri/bad-scheme"},
                                                        {"file://host/a", "uri/bad-host"},
                                                        {"file://a", "uri/bad-host"},
                                                        {"gs://", "uri/no-bucket"},
                                                        {"gs:///a", "uri/no-bucket"},
                                                        {"a\0b"s, "uri/nul"},
                                                        {"gs://b/a\0"s, "uri/nul"}};
  for (const auto& [text, reason] : kTable) {
    const Result<Uri> uri = parse_uri(text);
    ASSERT_FALSE(uri) << text;
    EXPECT_EQ(uri.error().reason(), reason) << text;
    EXPECT_EQ(uri.error().code(), Code::kInvalidArgument);
  }
}

TEST(Uri, SplitsOffTheLastComponent) {
  const struct {
    const char* whole;
    const char* parent;
    const char* name;
  } kTable[] = {
      {"b", ".", "b"},
      {"a/b", "a", "b"},
      {"/b", "/", "b"},
      {"/a/b.x", "/a", "b.x"},
      {"a/", "a", ""},
      {"gs://bucket/b", "gs://bucket", "b"},
      {"gs://bucket/a/b", "gs://bucket/a", "b"},
      {"memory://b", "memory://b", ""},
      {"memory://x/b", "memory://x", "b"},
  };
  for (const auto& row : kTable) {
    const auto [parent, name] = split_uri(*parse_uri(row.whole));
    EXPECT_EQ(parent.to_string(), row.parent) << row.whole;
    EXPECT_EQ(name, row.name) << row.whole;
  }
}

TEST(Uri, JoinsPathsThatMayBeEmpty) {
  EXPECT_EQ(join_path("a/b", "c"), "a/b/c");
  EXPECT_EQ(join_path("", "c"), "c");
  EXPECT_EQ(join_path("a", ""), "a");
  EXPECT_EQ(join_path("", ""), "");
}

TEST(Uri, KnowsWhichPathsStayBelow) {
  for (const auto& path : {"a"s, "a/b"s, "..."s, "a/..b"s, ".hidden"s, "a b"s}) {
    EXPECT_TRUE(is_safe_relative_path(path)) << path;
  }
  for (const auto& path : {""s, "/"s, "/a"s, "."s, ".."s, "a/.."s, "../a"s, "a/../b"s, "a/./b"s,
                           "a//b"s, "a/"s, "a\0b"s}) {
    EXPECT_FALSE(is_safe_relative_path(path)) << path;
  }
}

TEST(LocalPath, IsNeverAPlaceElsewhere) {
  const struct {
    const char* text;
    const char* path;  // null: refused
  } kTable[] = {
      {"/a/b", "/a/b"},
      {"a", "a"},
      {"a/b///", "a/b"},
      {"/", "/"},
      {"///", "/"},
      {".", "."},
      {"file:///a", "/a"},
      {"a:b", "a:b"},
      {"gs://bucket/a", nullptr},
      {"s3://b", nullptr},
      {"memory://x/a", nullptr},
  };
  for (const auto& row : kTable) {
    const auto path = LocalPath::parse(row.text);
    ASSERT_EQ(path.has_value(), row.path != nullptr) << row.text;
    if (path) {
      EXPECT_EQ(path->text(), row.path);
      continue;
    }
    EXPECT_EQ(path.error().reason(), "uri/not-local");
    EXPECT_EQ(path.error().code(), Code::kUnimplemented);
    EXPECT_NE(path.error().message().find(row.text), std::string::npos) << "it is named";
  }
  EXPECT_EQ(LocalPath::parse("").error().reason(), parse_uri("").error().reason());
}

TEST(LocalPath, IsNoUrlThatLostASlash) {
  for (const char* text : {"gs:/bucket/a", "s3:/b", "memory:/x", "https:/x"})
    EXPECT_EQ(LocalPath::parse(text).error().reason(), "uri/lost-slash") << text;
  for (const char* text : {"./gs:/bucket", "a:/b", "gs:", "gs:b", "x/gs:/b"})
    EXPECT_TRUE(LocalPath::parse(text)) << text;
}

TEST(LocalPath, LeadsUpAndDown) {
  const struct {
    const char* text;
    const char* below;
    const char* parent;
    const char* name;
  } kTable[] = {
      {"/a/b", "/a/b/x", "/a", "b"}, {"/a", "/a/x", "/", "a"},    {"/", "/x", "/", ""},
      {"a", "a/x", ".", "a"},        {"a/b/", "a/b/x", "a", "b"},
  };
  for (const auto& row : kTable) {
    const LocalPath path = *LocalPath::parse(row.text);
    EXPECT_EQ(path.below("x").text(), row.below);
    EXPECT_EQ(path.parent().text(), row.parent);
    EXPECT_EQ(path.name(), row.name) << row.text;
  }
}

}  // namespace
}  // namespace cairn
