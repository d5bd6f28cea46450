// SPDX-License-Identifier: Apache-2.0
// What a reader sees while somebody else saves, and after a power cut when two had saved.
#include "cairn/commit/posix/take_snapshot.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <gtest/gtest.h>

#include "cairn/commit/posix/file_attempt.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/lossy_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"

namespace cairn {
namespace {

using testing::LossyFileSystem;
using testing::must;

constexpr const char* kDest = "/c";

/// A save of one prefix, on its way: one file, which holds the attempt's id.
class Saving {
 public:
  Saving(storage::FileSystem& fs, const std::string& prefix) : prefix_(prefix) {
    attempt_ = must(begin_attempt(fs, clock_, testing::local(kDest), {.prefixes = {prefix}}));
    must(attempt_->data().put(prefix + "/id", as_bytes(attempt_->id())));
    must(attempt_->data().sync());
  }

  const std::string& id() const { return attempt_->id(); }
  Result<void> commit() {
    CommitRequest request;
    request.prefixes.push_back({.record = {.name = prefix_,
                                           .manifest = prefix_ + "/id",
                                           .manifest_bytes = 0,
                                           .manifest_sha256 = std::string(64, '0'),
                                           .attempt = {},
                                           .entries = {prefix_}},
                                .arrays = std::nullopt});
    request.mark = "{\"by\": \"" + attempt_->id() + "\"}";
    return attempt_->commit(request);
  }
  void end() { attempt_.reset(); }

 private:
  testing::ManualClock clock_;
  const std::string prefix_;
  std::unique_ptr<Attempt> attempt_;
};

class Turn {
 public:
  void release() {
    const std::lock_guard lock(mutex_);
    ++turns_;
    changed_.notify_one();
  }
  void acquire() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return turns_ > 0; });
    --turns_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int turns_ = 0;
};

/// A reader stops before one of its operations until a save has come to one of its own, and then
/// reads to its end before the save goes on.
struct Meeting {
  std::size_t reader_stops_at;
  std::size_t writer_stops_at;
  bool reader_stopped = false;
  bool writer_stopped = false;
  Result<Snapshot> seen = Error(Code::kInternal, "unset", "");

  void run(LossyFileSystem& disk) {
    Turn reader_waits;
    Turn writer_is_there;
    Turn reader_is_done;
    const auto reading = testing::interpose(disk, [&](std::size_t operation) {
      if (operation != reader_stops_at) return;
      reader_stopped = true;
      reader_waits.release();
      writer_is_there.acquire();
    });
    bool commits = false;
    std::size_t written = 0;
    const auto let_read = [&] {
      writer_is_there.release();
      reader_is_done.acquire();
    };
    const auto writing = testing::interpose(disk, [&](std::size_t) {
      if (!commits || written++ != writer_stops_at) return;
      writer_stopped = true;
      let_read();
    });
    Saving save(*writing, "a");
    std::thread reader([&] {
      seen = take_snapshot(*reading, testing::local(kDest));
      if (!reader_stopped) reader_waits.release();
      reader_is_done.release();
    });
    reader_waits.acquire();
    commits = reader_stopped;
    if (reader_stopped) {
      must(save.commit());
      save.end();
      if (!writer_stopped) let_read();
    }
    commits = false;
    reader.join();
  }
};

TEST(Snapshot, AMarkedCheckpointIsNeverSeenUnmarkedOrTornWhateverASaveDoesMeanwhile) {
  LossyFileSystem base;
  must(Saving(base, "a").commit());
  bool reader_stopped = true;
  for (std::size_t read = 0; reader_stopped; ++read) {
    bool writer_stopped = true;
    for (std::size_t written = 0; writer_stopped; ++written) {
      Meeting meeting{.reader_stops_at = read, .writer_stops_at = written};
      meeting.run(*base.after_kill());
      reader_stopped = meeting.reader_stopped;
      writer_stopped = meeting.writer_stopped;
      const std::string when = "a save did " + std::to_string(written) +
                               " operations after the first " + std::to_string(read) +
                               " of a reader";
      ASSERT_TRUE(meeting.seen) << when << ": " << meeting.seen.error().to_string();
      EXPECT_TRUE(meeting.seen->mark) << when;
      EXPECT_FALSE(meeting.seen->torn) << when;
      EXPECT_TRUE(meeting.seen->record) << when;
      if (HasFailure()) return;
    }
  }
}

bool is_burial(const LossyFileSystem::Operation& operation) {
  return operation.name == "rename" &&
         operation.path.find(" to /c/.cairn-trash/") != std::string::npos;
}

/// Everything the record names lies where a reader looks for it, and these saves are in the record.
void check(LossyFileSystem& disk, const std::vector<std::string>& saved, const std::string& when) {
  const auto seen = take_snapshot(disk, testing::local(kDest));
  ASSERT_TRUE(seen && seen->record) << when;
  const auto decided =
      std::ranges::count(seen->attempts, AttemptState::kDecided, &AttemptView::state);
  EXPECT_LE(decided, 1) << when;
  for (const std::string& id : saved)
    EXPECT_EQ(std::ranges::count(seen->record->committed, id), 1) << when << ": a save is lost";
  const auto files = disk.snapshot();
  for (const RecordPrefix& prefix : seen->record->prefixes) {
    const auto file = files.find(std::string(kDest) + "/" + seen->locate(prefix.manifest));
    ASSERT_NE(file, files.end()) << when << ": " << prefix.name;
    EXPECT_EQ(file->second, prefix.attempt) << when;
  }
}

TEST(Snapshot, APowerCutDoesNotBringBackASaveThatWasOverBeforeTheNextDecided) {
  LossyFileSystem base;
  must(Saving(base, "a").commit());
  bool crashed = true;
  for (std::size_t n = 0; crashed; ++n) {
    const auto disk = base.after_kill();
    bool fails = false;
    const auto failing = testing::interpose(*disk, [&](std::size_t) {
      const auto operations = disk->operations();
      fails = fails || (!operations.empty() && is_burial(operations.back()));
      if (fails) disk->fail_at(operations.size(), EIO);
    });
    Saving second(*disk, "a");
    Saving first(*failing, "b");
    must(first.commit());
    ASSERT_TRUE(fails);
    disk->crash_after(disk->operations().size() + n);
    std::vector<std::string> saved{first.id()};
    crashed = !second.commit();
    if (!crashed) saved.push_back(second.id());
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto left = disk->after_power_cut(seed);
      const std::string when =
          "cut after operation " + std::to_string(n) + ", seed " + std::to_string(seed);
      check(*left, saved, when);
      must(recover(*left, system_clock(), testing::local(kDest)));
      check(*left, saved, when + ", recovered");
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cairn
