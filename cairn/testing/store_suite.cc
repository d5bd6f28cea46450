// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/store_suite.h"

#include <array>
#include <atomic>
#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "cairn/async/executor.h"
#include "cairn/testing/must.h"

namespace cairn::testing {
namespace {

using storage::Condition;
using storage::ListEntry;
using storage::ObjectInfo;
using storage::read_all;
using storage::Store;

constexpr std::uint64_t kLimit = kMiB;

std::string text_of(Store& store, const std::string& key) {
  auto bytes = read_all(store, key, kLimit);
  return bytes ? std::string(as_text(bytes->bytes())) : std::string(bytes.error().reason());
}

std::string random_text(std::mt19937_64& random, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void reads_back_what_was_put(Store& store) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 70'001U}) {
    const std::string text = random_text(random, size);
    const std::string key = "a b/%2E/" + std::to_string(size);
    const ObjectInfo info = must(store.put(key, as_bytes(text)));
    EXPECT_EQ(info.size, size);
    EXPECT_EQ(text_of(store, key), text);
    EXPECT_EQ(must(store.stat(key)).size, size);
    EXPECT_EQ(must(store.stat(key)).generation, info.generation);
  }
  must(store.sync());
}

void reads_ranges_and_refuses_short_ones(Store& store) {
  must(store.put("key", as_bytes("0123456789")));
  const auto reader = must(store.open("key"));
  EXPECT_EQ(reader->size(), 10);
  std::string out(4, ' ');
  const auto read = [&](std::uint64_t offset) {
    return reason(reader->read_at(offset, std::as_writable_bytes(std::span(out))));
  };
  EXPECT_EQ(read(3), "none");
  EXPECT_EQ(out, "3456");
  for (const std::uint64_t offset : {std::uint64_t{7}, std::uint64_t{10}, std::uint64_t{1000}}) {
    EXPECT_EQ(read(offset), "storage/short-read") << offset;
  }
  EXPECT_TRUE(reader->read_at(10, {}));
}

void refuses_to_read_all_above_the_limit(Store& store) {
  must(store.put("key", as_bytes("0123")));
  EXPECT_EQ(reason(read_all(store, "key", 3)), "storage/too-large");
  EXPECT_EQ(must(read_all(store, "key", 4)).size(), 4);
}

void says_what_is_missing(Store& store) {
  must(store.put("d/key", as_bytes("x")));
  for (const char* key : {"missing", "d", "d/key/below", "d/missing"}) {
    EXPECT_EQ(reason(store.stat(key)), "storage/not-found") << key;
    EXPECT_EQ(reason(store.open(key)), "storage/not-found") << key;
    EXPECT_EQ(reason(store.remove(key)), "storage/not-found") << key;
  }
  EXPECT_EQ(store.open("missing").error().where(), store.describe("missing"));
}

void refuses_bad_keys(Store& store) {
  const std::vector<std::string> keys = {"",     "/a",     "a/",  "a//b", "../a",
                                         "a/..", "a/../b", "./a", "a/.",  std::string("a\0b", 3)};
  for (const std::string& key : keys) {
    EXPECT_EQ(reason(store.stat(key)), "storage/bad-key") << key;
    EXPECT_EQ(reason(store.open(key)), "storage/bad-key") << key;
    EXPECT_EQ(reason(store.create(key, 1)), "storage/bad-key") << key;
    EXPECT_EQ(reason(store.put(key, as_bytes("x"))), "storage/bad-key") << key;
    EXPECT_EQ(reason(store.remove(key)), "storage/bad-key") << key;
    EXPECT_EQ(reason(store.list(key, true)), key.empty() ? "none" : "storage/bad-key") << key;
  }
  EXPECT_TRUE(must(store.list("", true)).empty());
}

void puts_only_if_absent(Store& store) {
  const Condition absent{.absent = true};
  must(store.put("d/key", as_bytes("first"), absent));
  EXPECT_EQ(reason(store.put("d/key", as_bytes("second"), absent)), "storage/condition-failed");
  EXPECT_EQ(text_of(store, "d/key"), "first");
  EXPECT_EQ(must(store.list("", true)).size(), 1);
  must(store.remove("d/key"));
  must(store.put("d/key", as_bytes("third"), absent));
}

void puts_only_at_a_generation(Store& store) {
  const ObjectInfo first = must(store.put("key", as_bytes("first")));
  const Condition at_first{.generation = first.generation};
  if (!store.capabilities().conditional_write) {
    EXPECT_EQ(reason(store.put("key", as_bytes("second"), at_first)), "storage/no-condition");
    EXPECT_EQ(text_of(store, "key"), "first");
    return;
  }
  EXPECT_EQ(reason(store.put("other", as_bytes("x"), at_first)), "storage/condition-failed");
  const ObjectInfo second = must(store.put("key", as_bytes("second"), at_first));
  EXPECT_NE(second.generation, first.generation);
  EXPECT_EQ(reason(store.put("key", as_bytes("third"), at_first)), "storage/condition-failed");
  EXPECT_EQ(text_of(store, "key"), "second");
  must(store.put("key", as_bytes("first")));
  EXPECT_EQ(reason(store.put("key", as_bytes("x"), at_first)), "storage/condition-failed")
      << "equal bytes are another generation";
}

void only_one_of_many_creates_a_key(Store& store) {
  const auto pool = make_thread_pool(4);
  std::atomic<int> winners = 0;
  must(for_each_index(*pool, 16, [&](std::size_t i) -> Result<void> {
    auto put = store.put("claim", as_bytes(std::to_string(i)), {.absent = true});
    if (put) ++winners;
    EXPECT_EQ(reason(put), put ? "none" : "storage/condition-failed");
    return {};
  }));
  EXPECT_EQ(winners, 1);
}

void replaces_whole_objects(Store& store) {
  must(store.put("key", as_bytes("a long first value")));
  const auto before = must(store.stat("key"));
  const auto old_reader = must(store.open("key"));
  must(store.put("key", as_bytes("short")));
  EXPECT_EQ(text_of(store, "key"), "short");
  EXPECT_NE(must(store.stat("key")).generation, before.generation);
  std::string out(18, ' ');
  must(old_reader->read_at(0, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, "a long first value") << "an open reader stays at its generation";

  const auto writer = must(store.create("key", 4));
  must(writer->write_at(0, as_bytes("last")));
  EXPECT_EQ(text_of(store, "key"), "short");
  must(writer->finish());
  EXPECT_EQ(text_of(store, "key"), "last");
}

void leaves_nothing_of_an_unfinished_writer(Store& store) {
  must(store.put("d/old", as_bytes("old")));
  for (const char* key : {"d/old", "d/new"}) {
    const auto writer = must(store.create(key, 6));
    must(writer->write_at(0, as_bytes("abc")));
  }
  EXPECT_EQ(text_of(store, "d/old"), "old");
  EXPECT_EQ(text_of(store, "d/new"), "storage/not-found");
  EXPECT_EQ(must(store.list("", true)).size(), 1);
}

void refuses_to_finish_what_is_incomplete(Store& store) {
  const auto writer = must(store.create("key", 4));
  must(writer->write_at(2, as_bytes("cd")));
  EXPECT_EQ(reason(writer->finish()), "storage/incomplete");
  EXPECT_EQ(reason(writer->write_at(3, as_bytes("de"))), "storage/out-of-range");
  EXPECT_EQ(reason(writer->write_at(~std::uint64_t{0}, as_bytes("de"))), "storage/out-of-range");
  must(writer->write_at(0, as_bytes("ab")));
  must(writer->finish());
  EXPECT_EQ(text_of(store, "key"), "abcd");
  EXPECT_EQ(reason(writer->finish()), "storage/incomplete") << "once";
  must(must(store.create("empty", 0))->finish());
  EXPECT_EQ(text_of(store, "empty"), "");
}

void takes_disjoint_writes_from_many_threads(Store& store) {
  if (!store.capabilities().random_write) GTEST_SKIP() << "the store takes ascending offsets only";
  constexpr std::size_t kParts = 64;
  constexpr std::size_t kPart = 1000;
  std::mt19937_64 random(2);
  const std::string text = random_text(random, kParts * kPart);
  const auto writer = must(store.create("key", text.size()));
  const auto pool = make_thread_pool(4);
  must(for_each_index(*pool, kParts, [&](std::size_t i) {
    const std::size_t at = (kParts - 1 - i) * kPart;
    return writer->write_at(at, as_bytes(std::string_view(text).substr(at, kPart)));
  }));
  must(writer->finish());
  EXPECT_EQ(text_of(store, "key"), text);
}

void writes_many_objects_from_many_threads(Store& store) {
  const auto pool = make_thread_pool(4);
  must(for_each_index(*pool, 100, [&](std::size_t i) -> Result<void> {
    const std::string key = "d" + std::to_string(i % 7) + "/e/" + std::to_string(i);
    CAIRN_TRY(store.put(key, as_bytes(key)));
    return {};
  }));
  must(store.sync());
  const auto entries = must(store.list("", true));
  EXPECT_EQ(entries.size(), 100);
  for (const ListEntry& entry : entries) EXPECT_EQ(text_of(store, entry.key), entry.key);
}

using Row = std::tuple<std::string, bool, std::uint64_t>;

std::vector<Row> rows(const std::vector<ListEntry>& entries) {
  std::vector<Row> out;
  for (const ListEntry& entry : entries) out.emplace_back(entry.key, entry.directory, entry.size);
  return out;
}

void lists_keys_in_order(Store& store) {
  for (const char* key : {"a/b/c", "a/b-d", "a-b", "a.b/x", "z", "a/b/d", "\xc3\xa9"}) {
    must(store.put(key, as_bytes(key)));
  }
  EXPECT_EQ(rows(must(store.list("", true))), (std::vector<Row>{{"a-b", false, 3},
                                                                {"a.b/x", false, 5},
                                                                {"a/b-d", false, 5},
                                                                {"a/b/c", false, 5},
                                                                {"a/b/d", false, 5},
                                                                {"z", false, 1},
                                                                {"\xc3\xa9", false, 2}}));
  EXPECT_EQ(rows(must(store.list("", false))), (std::vector<Row>{{"a", true, 0},
                                                                 {"a-b", false, 3},
                                                                 {"a.b", true, 0},
                                                                 {"z", false, 1},
                                                                 {"\xc3\xa9", false, 2}}));
  EXPECT_EQ(rows(must(store.list("a", false))),
            (std::vector<Row>{{"a/b", true, 0}, {"a/b-d", false, 5}}));
  EXPECT_EQ(rows(must(store.list("a/b", true))),
            (std::vector<Row>{{"a/b/c", false, 5}, {"a/b/d", false, 5}}));
  for (const char* nothing : {"missing", "z", "a/b/c", "z/below"}) {
    EXPECT_TRUE(must(store.list(nothing, true)).empty()) << nothing;
  }
}

void does_what_a_map_does(Store& store) {
  std::mt19937_64 random(3);
  std::map<std::string, std::string> oracle;
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(random() % 3) + "/" + std::to_string(random() % 5);
    const std::string text = random_text(random, random() % 100);
    switch (random() % 4) {
      case 0:
        EXPECT_EQ(store.remove(key).has_value(), oracle.erase(key) == 1);
        break;
      case 1:
        EXPECT_EQ(store.put(key, as_bytes(text), {.absent = true}).has_value(),
                  oracle.try_emplace(key, text).second);
        break;
      default:
        must(store.put(key, as_bytes(text)));
        oracle[key] = text;
    }
  }
  std::map<std::string, std::string> found;
  for (const ListEntry& entry : must(store.list("", true))) {
    found[entry.key] = text_of(store, entry.key);
  }
  EXPECT_EQ(found, oracle);
}

using Body = void (*)(Store&);

constexpr auto kTests = std::to_array<std::pair<const char*, Body>>({
    {"ReadsBackWhatWasPut", &reads_back_what_was_put},
    {"ReadsRangesAndRefusesShortOnes", &reads_ranges_and_refuses_short_ones},
    {"RefusesToReadAllAboveTheLimit", &refuses_to_read_all_above_the_limit},
    {"SaysWhatIsMissing", &says_what_is_missing},
    {"RefusesBadKeys", &refuses_bad_keys},
    {"PutsOnlyIfAbsent", &puts_only_if_absent},
    {"PutsOnlyAtAGeneration", &puts_only_at_a_generation},
    {"OnlyOneOfManyCreatesAKey", &only_one_of_many_creates_a_key},
    {"ReplacesWholeObjects", &replaces_whole_objects},
    {"LeavesNothingOfAnUnfinishedWriter", &leaves_nothing_of_an_unfinished_writer},
    {"RefusesToFinishWhatIsIncomplete", &refuses_to_finish_what_is_incomplete},
    {"TakesDisjointWritesFromManyThreads", &takes_disjoint_writes_from_many_threads},
    {"WritesManyObjectsFromManyThreads", &writes_many_objects_from_many_threads},
    {"ListsKeysInOrder", &lists_keys_in_order},
    {"DoesWhatAMapDoes", &does_what_a_map_does},
});

class StoreTest : public ::testing::Test {
 public:
  StoreTest(StoreMaker make, Body body) : make_(std::move(make)), body_(body) {}
  void TestBody() override {
    const auto store = make_();
    ASSERT_NE(store, nullptr);
    body_(*store);
  }

 private:
  StoreMaker make_;
  Body body_;
};

}  // namespace

bool register_store_suite(const std::string& name, const StoreMaker& make) {
  for (const auto& entry : kTests) {
    const auto make_test = [make, body = entry.second]() -> ::testing::Test* {
      return new StoreTest(make, body);
    };
    ::testing::RegisterTest(name.c_str(), entry.first, nullptr, nullptr, __FILE__, __LINE__,
                            make_test);
  }
  return true;
}

}  // namespace cairn::testing
