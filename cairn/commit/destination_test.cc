// SPDX-License-Identifier: Apache-2.0
// The suite that every implementation of Destination passes.
#include "cairn/commit/destination.h"

#include <atomic>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/commit/open.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/save/save.h"
#include "cairn/storage/open.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/rank_threads.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using testing::must;
using testing::reason;

/// A kind of storage; a row for each.
struct Kind {
  const char* name;
  /// A new place, which lives as long as what it is given with.
  std::string (*place)(const testing::TempDir& dir);
};

std::string path_in(const testing::TempDir& dir) { return dir / "run/c"; }
std::string keys_in_memory(const testing::TempDir& dir) {
  return "memory://destinations" + dir.path() + "/c";
}
constexpr Kind kKinds[] = {{"Posix", &path_in}, {"Memory", &keys_in_memory}};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

/// One file, which says who wrote it.
RecordPrefix prefix_of(const std::string& prefix, const std::string& content) {
  return {.name = prefix,
          .manifest = prefix + "/file",
          .manifest_bytes = content.size(),
          .manifest_sha256 = std::string(64, '0'),
          .attempt = {},
          .entries = {prefix}};
}

class Destinations : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Destination> open() {
    return must(open_destination(must(parse_uri(path_)), runtime_));
  }

  static void write(Attempt& attempt, const std::string& prefix, const std::string& content) {
    must(attempt.data().put(prefix + "/file", as_bytes(content)));
    must(attempt.data().sync());
  }

  static Result<void> commit(Attempt& attempt, const std::vector<RecordPrefix>& prefixes) {
    CommitRequest request;
    for (const RecordPrefix& prefix : prefixes) request.prefixes.push_back({.record = prefix});
    request.mark = "{\"by\": \"" + attempt.id() + "\"}";
    return attempt.commit(request);
  }

  /// A whole save; the attempt's id.
  std::string save(const std::string& prefix, const std::string& content) {
    const auto attempt = must(open()->begin({.prefixes = {prefix}}));
    write(*attempt, prefix, content);
    must(commit(*attempt, {prefix_of(prefix, content)}));
    return attempt->id();
  }

  /// What a reader finds in the file of a prefix; "" if the record does not name it.
  std::string read(const std::string& prefix) {
    const auto place = open();
    const Snapshot seen = must(place->snapshot());
    if (!seen.record || seen.record->find(prefix) == nullptr) return "";
    const auto store = must(place->open_below(seen.locate(prefix)));
    return std::string(as_text(must(storage::read_all(*store, "file", kMiB)).bytes()));
  }

  testing::TempDir dir_;
  Runtime runtime_;
  const std::string path_ = GetParam().place(dir_);
};

TEST_P(Destinations, NothingIsSeenBeforeTheCommitAndAllOfItAfter) {
  const auto attempt = must(open()->begin({.prefixes = {"model", "tx"}, .run_id = "r"}));
  write(*attempt, "model", "m");
  write(*attempt, "tx", "t");
  const Snapshot before = must(open()->snapshot());
  EXPECT_FALSE(before.record);
  EXPECT_FALSE(before.mark);
  ASSERT_EQ(before.attempts.size(), 1u);
  EXPECT_EQ(before.attempts[0].id, attempt->id());
  EXPECT_EQ(before.attempts[0].state, AttemptState::kAlive);
  must(commit(*attempt, {prefix_of("model", "m"), prefix_of("tx", "t")}));
  const Snapshot after = must(open()->snapshot());
  ASSERT_TRUE(after.record);
  EXPECT_EQ(after.record->committed, std::vector{attempt->id()});
  EXPECT_EQ(after.record->run_id, "r");
  EXPECT_EQ(after.mark, "{\"by\": \"" + attempt->id() + "\"}");
  EXPECT_TRUE(after.attempts.empty());
  EXPECT_EQ(read("model"), "m");
  EXPECT_EQ(read("tx"), "t");
  EXPECT_NE(before.version(), after.version());
}

TEST_P(Destinations, AnAttemptThatIsGivenUpLeavesNothing) {
  save("model", "old");
  const Snapshot before = must(open()->snapshot());
  {
    const auto attempt = must(open()->begin({.prefixes = {"model"}}));
    write(*attempt, "model", "half");
  }
  const Snapshot after = must(open()->snapshot());
  EXPECT_EQ(after.version(), before.version());
  EXPECT_EQ(after.mark, before.mark);
  EXPECT_FALSE(after.torn);
  EXPECT_TRUE(after.attempts.empty());
  EXPECT_EQ(read("model"), "old");
  const auto store = must(open()->open_below("model"));
  EXPECT_EQ(must(store->list("", true)).size(), 1u);
}

TEST_P(Destinations, ASaveReplacesItsPrefixAndKeepsTheOthers) {
  save("model", "one");
  save("tx", "other");
  save("model", "two");
  EXPECT_EQ(read("model"), "two");
  EXPECT_EQ(read("tx"), "other");
  EXPECT_EQ(must(open()->snapshot()).record->generation, 3u);
}

TEST_P(Destinations, OfTwoWritersOfOnePrefixTheSecondIsRefused) {
  save("model", "old");
  const auto first = must(open()->begin({.prefixes = {"model"}}));
  const auto second = must(open()->begin({.prefixes = {"model"}}));
  write(*first, "model", "first");
  write(*second, "model", "second");
  must(commit(*second, {prefix_of("model", "second")}));
  EXPECT_EQ(reason(commit(*first, {prefix_of("model", "first")})), "commit/prefix-changed");
  EXPECT_EQ(read("model"), "second");
}

TEST_P(Destinations, WritersOfDifferentPrefixesBothWin) {
  const auto first = must(open()->begin({.prefixes = {"model"}}));
  const auto second = must(open()->begin({.prefixes = {"tx"}}));
  write(*first, "model", "m");
  write(*second, "tx", "t");
  must(commit(*second, {prefix_of("tx", "t")}));
  must(commit(*first, {prefix_of("model", "m")}));
  EXPECT_EQ(read("model"), "m");
  EXPECT_EQ(read("tx"), "t");
}

TEST_P(Destinations, RefusesPrefixesInsideOneAnother) {
  EXPECT_EQ(reason(open()->begin({.prefixes = {"a", "a.b"}})), "prefix/nested");
}

TEST_P(Destinations, WhatIsNoCheckpointIsNotReplaced) {
  must(open()->make());
  const auto store = must(storage::open_store(must(parse_uri(path_)), {}));
  must(store->put("model/mine", as_bytes("mine")));
  const auto saved = [&]() -> Result<void> {
    CAIRN_TRY_ASSIGN(const auto attempt, open()->begin({.prefixes = {"model"}}));
    write(*attempt, "model", "m");
    return commit(*attempt, {prefix_of("model", "m")});
  }();
  EXPECT_EQ(reason(saved), "commit/foreign-entry");
  EXPECT_EQ(as_text(must(storage::read_all(*store, "model/mine", kMiB)).bytes()), "mine");
}

TEST_P(Destinations, ARefusedCommitChangesNothing) {
  save("model", "old");
  const Snapshot before = must(open()->snapshot());
  const auto attempt = must(open()->begin({.prefixes = {"model"}}));
  write(*attempt, "model", "new");
  CommitRequest request;
  request.prefixes.push_back({.record = prefix_of("model", "new")});
  request.mark = std::string(kMaxMarkBytes + 1, 'x');
  EXPECT_EQ(reason(attempt->commit(request)), "commit/file-too-large");
  EXPECT_EQ(must(open()->snapshot()).version(), before.version());
  EXPECT_EQ(must(open()->snapshot()).mark, before.mark);
  EXPECT_EQ(read("model"), "old");
}

TEST_P(Destinations, AnErrorOfTheGuardRefusesTheCommit) {
  const auto attempt =
      must(open()->begin({.prefixes = {"model"}, .guard = []() -> Result<std::shared_ptr<void>> {
                            return Error(Code::kFailedPrecondition, "run/taken-over",
                                         "not ours any more");
                          }}));
  write(*attempt, "model", "m");
  EXPECT_EQ(reason(commit(*attempt, {prefix_of("model", "m")})), "run/taken-over");
  EXPECT_FALSE(must(open()->snapshot()).record);
}

TEST_P(Destinations, WhatWasOpenedStaysThoughItIsReplaced) {
  save("model", "old");
  const auto place = open();
  const auto store = must(place->open_below(must(place->snapshot()).locate("model")));
  const auto reader = must(store->open("file"));
  save("model", "new");
  std::string text(3, ' ');
  must(reader->read_at(0, {reinterpret_cast<std::byte*>(text.data()), text.size()}));
  EXPECT_EQ(text, "old");
  // A file system may have deleted it by now.
  const auto again = storage::read_all(*store, "file", kMiB);
  if (again) {
    EXPECT_EQ(as_text(again->bytes()), "old");
  }
}

TEST_P(Destinations, FilesAreListedAndReadAndChanged) {
  EXPECT_EQ(open()->list("").error().code(), Code::kNotFound);
  EXPECT_EQ(open()->version_of("").error().code(), Code::kNotFound);
  EXPECT_EQ(open()->write("notes", "a").error().code(), Code::kNotFound);
  const auto leave = [](const Snapshot&, const std::optional<std::string>& before) {
    return Result<std::optional<std::string>>(before);
  };
  EXPECT_EQ(open()->update("notes", leave).error().code(), Code::kNotFound);
  save("model", "m");
  const std::string before = must(open()->version_of(""));
  must(open()->write("notes", "a"));
  EXPECT_NE(must(open()->version_of("")), before);
  EXPECT_EQ(must(open()->read("notes", 10)), "a");
  EXPECT_EQ(must(open()->read("other", 10)), std::nullopt);
  EXPECT_EQ(reason(open()->read("notes", 0)), "checkpoint/file-too-large");
  EXPECT_EQ(must(open()->stat("notes")).size, 1u);
  EXPECT_EQ(open()->stat("other").error().code(), Code::kNotFound);
  EXPECT_EQ(open()->list("other").error().code(), Code::kNotFound);
  std::map<std::string, Destination::Child::Kind> names;
  for (const Destination::Child& child : must(open()->list(""))) names[child.name] = child.kind;
  EXPECT_EQ(names.at("notes"), Destination::Child::Kind::kFile);
  EXPECT_EQ(names.at("model"), Destination::Child::Kind::kDirectory);
  must(open()->remove("notes"));
  must(open()->remove("notes"));
  EXPECT_EQ(must(open()->read("notes", 10)), std::nullopt);
}

TEST_P(Destinations, AChangeSeesWhatIsCommittedAndMayRefuse) {
  save("model", "m");
  using Text = std::optional<std::string>;
  const auto change = [&](Result<Text> after) {
    return open()->update("notes", [&](const Snapshot& now, const Text&) -> Result<Text> {
      EXPECT_TRUE(now.record && now.record->find("model"));
      return after;
    });
  };
  must(change(Text("a")));
  EXPECT_EQ(must(open()->read("notes", 10)), "a");
  EXPECT_EQ(reason(change(Error(Code::kInternal, "test/no", "no"))), "test/no");
  EXPECT_EQ(must(open()->read("notes", 10)), "a");
  must(change(Text()));
  EXPECT_EQ(must(open()->read("notes", 10)), std::nullopt);
  must(change(Text()));
}

TEST_P(Destinations, SaysWhatASaveDoes) {
  const auto attempt = must(open()->begin({.prefixes = {"model"}}));
  attempt->enter("writing");
  attempt->count(3, 7);
  const auto seen = must(open()->look());
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].view.id, attempt->id());
  EXPECT_EQ(seen[0].view.prefixes, std::vector<std::string>{"model"});
  ASSERT_EQ(seen[0].ranks.size(), 1u);
  EXPECT_EQ(seen[0].ranks[0].phase, "writing");
  EXPECT_EQ(seen[0].ranks[0].done, 3u);
  EXPECT_EQ(seen[0].ranks[0].total, 7u);
}

// Of several ranks. ------------------------------------------------------------------------------

TEST_P(Destinations, RanksMeetInAnAttempt) {
  const auto attempt = must(open()->begin({.prefixes = {"model"}, .ranks = 2}));
  const auto zero = must(open()->join({attempt->id(), 0, 2}));
  const auto one = must(open()->join({attempt->id(), 1, 2}));
  must(one->pieces().put("left", as_bytes("for rank 0")));
  must(one->data().put("model/file", as_bytes("m")));
  must(one->data().sync());
  for (const auto* rank : {&zero, &one}) {
    RankReport report;
    report.rank = rank == &zero ? 0 : 1;
    must((*rank)->report("written", report));
  }
  std::vector<int> told;
  must(zero->wait_reports("written", {0, 1}, Deadline::in(std::chrono::minutes(1)),
                          [&](const RankReport& report) -> Result<void> {
                            told.push_back(report.rank);
                            return {};
                          }));
  EXPECT_EQ(told, (std::vector{0, 1}));
  EXPECT_EQ(as_text(must(storage::read_all(zero->pieces(), "left", kMiB)).bytes()), "for rank 0");
  must(commit(*attempt, {prefix_of("model", "m")}));
  EXPECT_TRUE(one->wait_outcome(Deadline::in(std::chrono::minutes(1))));
  EXPECT_EQ(read("model"), "m");
}

TEST_P(Destinations, AnAbandonmentIsHeardByAllAndStopsTheCommit) {
  const auto attempt = must(open()->begin({.prefixes = {"model"}, .ranks = 2}));
  const auto zero = must(open()->join({attempt->id(), 0, 2}));
  const auto one = must(open()->join({attempt->id(), 1, 2}));
  const auto is_it = [](const Result<void>& heard) {
    return !heard && heard.error().code() == Code::kCancelled &&
           heard.error().message().find("no time left") != std::string::npos;
  };
  EXPECT_TRUE(is_it(one->abandon(Error(Code::kCancelled, "test/stop", "no time left"))));
  EXPECT_TRUE(is_it(zero->wait_outcome(Deadline::in(std::chrono::minutes(1)))));
  write(*attempt, "model", "m");
  EXPECT_TRUE(is_it(commit(*attempt, {prefix_of("model", "m")})));
  EXPECT_FALSE(must(open()->snapshot()).record);
}

TEST_P(Destinations, AnAbandonmentAfterTheDecisionChangesNothing) {
  const auto attempt = must(open()->begin({.prefixes = {"model"}, .ranks = 2}));
  const auto one = must(open()->join({attempt->id(), 1, 2}));
  write(*attempt, "model", "m");
  must(commit(*attempt, {prefix_of("model", "m")}));
  EXPECT_TRUE(one->abandon(Error(Code::kCancelled, "test/stop", "stop")));
  EXPECT_EQ(read("model"), "m");
}

TEST_P(Destinations, ARankThatDiedIsNamed) {
  const auto attempt = must(open()->begin({.prefixes = {"model"}, .ranks = 2}));
  const auto zero = must(open()->join({attempt->id(), 0, 2}));
  {
    const auto one = must(open()->join({attempt->id(), 1, 2}));
    one->enter("writing");
  }
  const auto heard = zero->wait_reports("written", {1}, Deadline::in(std::chrono::minutes(1)),
                                        [](const RankReport&) { return Result<void>(); });
  EXPECT_EQ(reason(heard), "ranks/died");
  EXPECT_NE(heard.error().to_string().find("rank 1 (phase 'writing')"), std::string::npos);
}

TEST_P(Destinations, AnAttemptThatIsNotThereCannotBeJoined) {
  save("model", "m");
  EXPECT_EQ(reason(open()->join({std::string(32, '0'), 1, 2})), "ranks/gone");
}

// Whole checkpoints. -----------------------------------------------------------------------------

Tree tree_of(std::uint64_t seed) {
  testing::Random random(seed);
  return Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {5, 3})},
                     {"b", testing::random_array(random, DType::kInt8, {7})},
                     {"step", Value(Integer(static_cast<std::int64_t>(seed)))}});
}

TEST_P(Destinations, ATreeComesBackInEveryLayout) {
  for (const std::string layout : {"zarr2", "safetensors"}) {
    const std::string path = path_ + "-" + layout;
    must(save_tree(tree_of(1), path, {.layout = layout}, runtime_));
    EXPECT_EQ(testing::difference(must(load(path, {}, runtime_)).tree, tree_of(1)), "") << layout;
    must(save_checkpoint({{"model", tree_of(2)}}, path + "-prefix", {.layout = layout}, runtime_));
    EXPECT_EQ(testing::difference(must(load(path + "-prefix", {.prefix = "model"}, runtime_)).tree,
                                  tree_of(2)),
              "")
        << layout;
  }
  EXPECT_EQ(reason(open_checkpoint(path_ + "-nowhere", runtime_)), "checkpoint/not-found");
}

constexpr std::uint64_t kSaves = 40;

TEST_P(Destinations, AReaderInALoopSeesOneTreeOrTheOther) {
  for (const std::string layout : {"zarr2", "safetensors"}) {
    const std::string path = path_ + "-" + layout;
    must(save_tree(tree_of(0), path, {.layout = layout}, runtime_));
    std::atomic<bool> done = false;
    std::thread writer([&] {
      Runtime own({.threads = 1});
      for (std::uint64_t seed = 1; seed <= kSaves; ++seed)
        must(save_tree(tree_of(seed), path, {.layout = layout}, own));
      done = true;
    });
    Runtime own({.threads = 1});
    std::uint64_t latest = 0;
    while (!done) {
      const auto loaded = load(path, {}, own);
      EXPECT_TRUE(loaded) << loaded.error().to_string();
      if (!loaded) break;
      while (latest <= kSaves && !testing::difference(loaded->tree, tree_of(latest)).empty())
        ++latest;
      EXPECT_LE(latest, kSaves) << layout << ": neither the tree seen before nor a later one";
    }
    writer.join();
  }
}

TEST_P(Destinations, RanksSaveOneTree) {
  testing::run_ranks(3, [&](coord::Coordinator& coordinator) {
    Runtime runtime({.threads = 1, .coordinator = &coordinator});
    for (const std::string layout : {"zarr2", "safetensors"}) {
      const std::string path = path_ + "-" + layout;
      must(save_tree(tree_of(7), path, {.layout = layout}, runtime));
      EXPECT_EQ(testing::difference(must(load(path, {}, runtime)).tree, tree_of(7)), "");
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, Destinations, ::testing::ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cairn
