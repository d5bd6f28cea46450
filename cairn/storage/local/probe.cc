// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/probe.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "cairn/base/buffer.h"

namespace cairn::storage {
namespace {

constexpr OpenOptions kExistingFile{.access = OpenOptions::Access::kReadWrite};
constexpr OpenOptions kDirectory{.access = OpenOptions::Access::kDirectory};

/// What a name may need: 255 bytes is what key paths are checked against.
constexpr std::size_t kNameLength = 255;

/// The directory that is tried in; the destructor removes it with all that was made there.
class Probe {
 public:
  static Result<std::unique_ptr<Probe>> begin(FileSystem& fs, const File& parent) {
    for (int i = 0;; ++i) {
      std::string name = fmt::format(".cairn-probe-{}-{}", ::getpid(), i);
      auto made = fs.make_directory(&parent, name);
      if (!made && made.error().reason() == "fs/exists") continue;
      CAIRN_TRY(std::move(made));
      CAIRN_TRY_ASSIGN(auto directory, fs.open(&parent, name, kDirectory));
      return std::make_unique<Probe>(fs, parent, std::move(name), std::move(directory));
    }
  }

  Probe(FileSystem& fs, const File& parent, std::string name, std::unique_ptr<File> directory)
      : fs_(fs), parent_(parent), name_(std::move(name)), directory_(std::move(directory)) {}
  ~Probe() {
    if (auto entries = fs_.list(*directory_)) {
      for (const DirEntry& entry : *entries) remove(entry).ignore_error("nothing is left to try");
    }
    fs_.remove_directory(&parent_, name_)
        .ignore_error("it is empty, and its name says what it was");
  }

  Result<bool> has_locks() {
    CAIRN_TRY_ASSIGN(const auto first, make("lock"));
    CAIRN_TRY_ASSIGN(const auto second, fs_.open(at(), "lock", kExistingFile));
    CAIRN_TRY_ASSIGN(const bool taken, first->try_lock());
    CAIRN_TRY_ASSIGN(const bool taken_twice, second->try_lock());
    return taken && !taken_twice;
  }

  Result<bool> creates_exclusively() {
    CAIRN_TRY(make("exclusive"));
    auto again = make("exclusive");
    return !again && again.error().reason() == "fs/exists";
  }

  Result<bool> renames_directories() {
    for (const char* name : {"from", "to"}) CAIRN_TRY(fs_.make_directory(at(), name));
    CAIRN_TRY(fs_.open(at(), "from/file", kNewFile));
    CAIRN_TRY(fs_.rename(at(), "from", at(), "to"));
    return !fs_.stat(at(), "from", false).has_value();
  }

  Result<bool> syncs_directories() {
    CAIRN_TRY(directory_->sync());
    return true;
  }
  Result<bool> syncs_in_batches() { return directory_->can_sync_file_system(); }

  Result<bool> has_hard_links() {
    CAIRN_TRY(make("one"));
    CAIRN_TRY(fs_.link(at(), "one", at(), "two"));
    CAIRN_TRY_ASSIGN(const FileInfo one, fs_.stat(at(), "one", false));
    CAIRN_TRY_ASSIGN(const FileInfo two, fs_.stat(at(), "two", false));
    auto again = fs_.link(at(), "one", at(), "two");
    return one.inode == two.inode && !again && again.error().reason() == "fs/exists";
  }

  Result<bool> tells_case_apart() {
    CAIRN_TRY(make("case"));
    return !fs_.stat(at(), "CASE", false).has_value();
  }

  /// The smallest unit that can be written directly.
  Result<std::size_t> direct_unit() {
    OpenOptions direct = kNewFile;
    direct.direct = true;
    CAIRN_TRY_ASSIGN(const auto file, fs_.open(at(), "direct", direct));
    CAIRN_TRY_ASSIGN(const Buffer page, Buffer::zeros(Buffer::kAlignment));
    Result<void> written;
    for (std::size_t unit = 512; unit <= page.size(); unit *= 2) {
      written = file->write_at(unit, page.bytes().first(unit));
      if (written) return unit;
    }
    return std::move(written).error();
  }

  /// At most kNameLength: longer ones are of no use to us.
  std::size_t longest_name() {
    std::size_t good = 0;
    std::size_t bad = kNameLength + 1;
    while (bad - good > 1) {
      const std::size_t tried = (good + bad) / 2;
      (make(std::string(tried, 'n')) ? good : bad) = tried;
    }
    return good;
  }

 private:
  const File* at() const { return directory_.get(); }
  Result<std::unique_ptr<File>> make(const std::string& name) {
    return fs_.open(at(), name, kNewFile);
  }
  Result<void> remove(const DirEntry& entry) {
    if (entry.kind != FileKind::kDirectory) return fs_.remove_file(at(), entry.name);
    fs_.remove_file(at(), entry.name + "/file")
        .ignore_error("a directory that was not moved has it");
    return fs_.remove_directory(at(), entry.name);
  }

  FileSystem& fs_;
  const File& parent_;
  const std::string name_;
  const std::unique_ptr<File> directory_;
};

struct Question {
  const char* name;
  Result<bool> (Probe::*ask)();
  const char* if_good;
  const char* if_not;
  bool promises_durability = false;
};

constexpr auto kQuestions = std::to_array<Question>({
    {"locks", &Probe::has_locks, "two writers cannot damage each other's checkpoint",
     "saving is refused here unless you assert that there is one writer only"},
    {"exclusive-create", &Probe::creates_exclusively, "exactly one process can take a name",
     "two processes may believe that they own the same file; do not save here"},
    {"directory-rename", &Probe::renames_directories,
     "a new checkpoint takes the place of an old one by moves that can be repeated",
     "a directory is copied and deleted instead of moved: slow, and readers may see it happen"},
    {"directory-sync", &Probe::syncs_directories, "names survive a power cut once saving has ended",
     "a power cut may take away checkpoints that were reported as saved", true},
    {"batch-sync", &Probe::syncs_in_batches,
     "all files of a save are made durable at once, with errors reported",
     "each file is made durable by itself: correct, but slower for many small arrays", true},
    {"hard-links", &Probe::has_hard_links, "the decision of a save is made by one exclusive link",
     "the decision of a save cannot be made exclusively; do not save here"},
    {"case-sensitive", &Probe::tells_case_apart, "keys that differ only in case are two",
     "keys that differ only in case overwrite each other"},
});

Finding answer(Probe& probe, const Question& row, const SpaceInfo& space) {
  if (row.promises_durability && space.in_memory) {
    return {row.name, false, "no (in memory)",
            "a power cut or a reboot takes all checkpoints here, however they were saved"};
  }
  const auto result = (probe.*row.ask)();
  const bool good = result && *result;
  std::string value = good ? "yes" : "no";
  if (!result) value = fmt::format("no ({})", result.error().reason());
  return {row.name, good, std::move(value), good ? row.if_good : row.if_not};
}

Finding direct_io(Probe& probe) {
  const auto unit = probe.direct_unit();
  if (!unit) {
    return {"direct-io", false, fmt::format("no ({})", unit.error().reason()),
            "data goes through the page cache"};
  }
  return {"direct-io", true, fmt::format("{} bytes", *unit),
          "large transfers can bypass the page cache in units of that size"};
}

Finding name_length(Probe& probe) {
  const std::size_t length = probe.longest_name();
  const bool good = length >= kNameLength;
  return {"name-length", good, fmt::format("{} bytes", length),
          good ? "every allowed key fits" : "keys with longer parts cannot be saved here"};
}

}  // namespace

Result<FileSystemReport> probe_file_system(FileSystem& fs, const std::string& directory) {
  CAIRN_TRY_ASSIGN(const auto parent,
                   fs.open(nullptr, directory,
                           {.access = OpenOptions::Access::kDirectory, .follow_links = true}));
  FileSystemReport report;
  CAIRN_TRY_ASSIGN(report.space, fs.space(*parent));
  CAIRN_TRY_ASSIGN(const auto probe, Probe::begin(fs, *parent));
  for (const Question& row : kQuestions)
    report.findings.push_back(answer(*probe, row, report.space));
  report.findings.push_back(direct_io(*probe));
  report.findings.push_back(name_length(*probe));
  return report;
}

}  // namespace cairn::storage
