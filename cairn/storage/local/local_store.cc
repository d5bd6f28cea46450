// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/local_store.h"

#include <atomic>

#include <fmt/format.h>

#include "cairn/storage/local/directories.h"
#include "cairn/storage/local/listing.h"
#include "cairn/storage/local/temporary_files.h"
#include "cairn/storage/refusal.h"

namespace cairn::storage {
namespace {

constexpr OpenOptions kSharedFile{.access = OpenOptions::Access::kReadWrite, .create = true};
constexpr OpenOptions kFollowedDirectory{.access = OpenOptions::Access::kDirectory,
                                         .follow_links = true};

const char* storage_reason(std::string_view reason) {
  if (reason == "fs/not-found") return "storage/not-found";
  if (reason == "fs/symlink") return "storage/symlink";
  return reason.data();
}

Error as_storage_error(const Error& error, std::string_view place) {
  return Error(error.code(), storage_reason(error.reason()), error.message(), error.origin())
      .in(place);
}

class LocalReader final : public ObjectReader {
 public:
  LocalReader(std::unique_ptr<File> file, std::uint64_t size, std::string place)
      : file_(std::move(file)), size_(size), place_(std::move(place)) {}

  std::uint64_t size() const override { return size_; }
  Result<void> read_at(std::uint64_t offset, MutableByteSpan out) override {
    CAIRN_TRY_ASSIGN(const std::size_t got, file_->read_at(offset, out));
    if (got == out.size()) return {};
    return short_read(offset, out.size(), place_);
  }
  Result<std::string> generation() override {
    CAIRN_TRY_ASSIGN(const FileInfo info, file_->info());
    return generation_of(info);
  }

 private:
  std::unique_ptr<File> file_;
  std::uint64_t size_;
  std::string place_;
};

/// How finish() makes a name of the file.
enum class Arrival : std::uint8_t {
  kInPlace,    ///< it has its name already
  kReplace,    ///< rename
  kExclusive,  ///< link, which fails where the name is taken
  kShared,     ///< it has its name already, and others write to it too
};

class LocalStore final : public Store {
 public:
  LocalStore(FileSystem& fs, std::string path, std::unique_ptr<File> root,
             const LocalStoreOptions& options, bool root_is_link)
      : fs_(fs),
        path_(std::move(path)),
        root_(std::move(root)),
        private_(options.private_directory),
        batch_(private_ && options.batch_sync && root_->can_sync_file_system()),
        root_is_link_(root_is_link),
        directories_(fs, *root_),
        temporary_(fs, *root_) {}

  std::string describe(std::string_view key) const override {
    if (key.empty()) return path_;
    return fmt::format("{}{}{}", path_, path_.ends_with('/') ? "" : "/", key);
  }
  Capabilities capabilities() const override {
    return {.random_write = true,
            .conditional_write = false,
            .directories = true,
            .shared_write = private_,
            .direct_io = false};
  }

  Result<ObjectInfo> stat(std::string_view key) override;
  Result<std::unique_ptr<ObjectReader>> open(std::string_view key) override;
  Result<std::unique_ptr<ObjectWriter>> create(std::string_view key, std::uint64_t size) override;
  Result<std::unique_ptr<ObjectWriter>> create_shared(std::string_view key,
                                                      std::uint64_t size) override;
  Result<ObjectInfo> put(std::string_view key, ByteSpan bytes, const Condition& condition) override;
  Result<void> remove(std::string_view key) override;
  Result<std::vector<ListEntry>> list(std::string_view directory, bool recursive) override;
  Result<void> sync() override;

 private:
  friend class LocalWriter;

  Error named(const Error& error, std::string_view key) const {
    return as_storage_error(error, describe(key));
  }
  template <typename T>
  Result<T> named(Result<T> result, std::string_view key) const {
    if (result) return result;
    return named(result.error(), key);
  }
  Result<void> check_writable(std::string_view key) const;
  Result<void> check_no_link(FileKind kind, std::string_view key) const;
  Result<void> check_is_file(FileKind kind, std::string_view key) const;
  Result<std::unique_ptr<class LocalWriter>> begin(std::string_view key, std::uint64_t size,
                                                   bool only_if_absent);
  Result<void> open_new(class LocalWriter& writer, const std::string& key, bool only_if_absent);

  FileSystem& fs_;
  const std::string path_;
  const std::unique_ptr<File> root_;
  const bool private_;
  const bool batch_;
  const bool root_is_link_;
  Directories directories_;
  TemporaryFiles temporary_;
};

class LocalWriter final : public ObjectWriter {
 public:
  LocalWriter(LocalStore& store, std::string key, std::uint64_t size)
      : store_(store), key_(std::move(key)), size_(size) {}
  ~LocalWriter() override {
    if (file_ == nullptr || arrival_ == Arrival::kShared) return;
    store_.fs_.remove_file(store_.root_.get(), name_).ignore_error("it is hidden, and ours alone");
  }

  /// Takes over the new file `name`.
  void take(std::unique_ptr<File> file, std::string name, Arrival arrival) {
    file_ = std::move(file);
    name_ = std::move(name);
    arrival_ = arrival;
  }
  Result<void> allocate() { return store_.named(file_->allocate(size_), key_); }

  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    CAIRN_TRY(check_range(offset, bytes.size(), size_, store_.describe(key_)));
    CAIRN_TRY(store_.named(file_->write_at(offset, bytes), key_));
    written_ += bytes.size();
    return {};
  }

  Result<void> finish() override {
    if (file_ == nullptr || (written_ != size_ && arrival_ != Arrival::kShared)) {
      return incomplete(written_, size_, store_.describe(key_));
    }
    if (!store_.batch_) CAIRN_TRY(store_.named(file_->sync(), key_));
    CAIRN_TRY_ASSIGN(const FileInfo info, store_.named(file_->info(), key_));
    CAIRN_TRY(store_.named(arrive(), key_));
    store_.directories_.names_changed_in(parent_of(key_));
    result_ = {info.size, generation_of(info)};
    file_.reset();
    return {};
  }
  const ObjectInfo& result() const { return result_; }

 private:
  Result<void> arrive() {
    const File* root = store_.root_.get();
    if (arrival_ == Arrival::kInPlace || arrival_ == Arrival::kShared) return {};
    if (arrival_ == Arrival::kReplace) return store_.fs_.rename(root, name_, root, key_);
    CAIRN_TRY(store_.fs_.link(root, name_, root, key_));
    store_.fs_.remove_file(root, name_)
        .ignore_error("the object is there; its second name is hidden");
    return {};
  }

  LocalStore& store_;
  const std::string key_;
  const std::uint64_t size_;
  std::unique_ptr<File> file_;
  std::string name_;
  Arrival arrival_ = Arrival::kReplace;
  std::atomic<std::uint64_t> written_ = 0;
  ObjectInfo result_;
};

Result<void> LocalStore::check_writable(std::string_view key) const {
  CAIRN_TRY(check_key(key, describe(key)));
  if (!root_is_link_) return {};
  return Error(
             Code::kFailedPrecondition, "storage/symlink",
             fmt::format("{} is a symbolic link; to write, give the directory it points to", path_))
      .in(describe(key));
}

// rename() and unlink() take the link itself, which is not ours.
Result<void> LocalStore::check_no_link(FileKind kind, std::string_view key) const {
  if (kind != FileKind::kSymlink) return {};
  return Error(Code::kFailedPrecondition, "storage/symlink",
               "it is a symbolic link, which is never replaced or deleted; remove it by hand")
      .in(describe(key));
}

Result<void> LocalStore::check_is_file(FileKind kind, std::string_view key) const {
  if (kind == FileKind::kFile) return {};
  return Error(Code::kNotFound, "storage/not-found",
               kind == FileKind::kDirectory ? "it is a directory, not an object"
                                            : "it is not a regular file")
      .in(describe(key));
}

// A key below a file is a key that is not there, as on any store.
Error as_absent(Error error) {
  if (error.reason() != "fs/not-a-directory") return error;
  return Error(Code::kNotFound, "fs/not-found", error.message(), error.origin());
}

Result<ObjectInfo> LocalStore::stat(std::string_view key) {
  CAIRN_TRY(check_key(key, describe(key)));
  auto info = fs_.stat(root_.get(), std::string(key), /*follow_links=*/true);
  if (!info) return named(as_absent(info.error()), key);
  CAIRN_TRY(check_is_file(info->kind, key));
  return ObjectInfo{info->size, generation_of(*info)};
}

Result<std::unique_ptr<ObjectReader>> LocalStore::open(std::string_view key) {
  CAIRN_TRY(check_key(key, describe(key)));
  auto file = fs_.open(root_.get(), std::string(key), {.follow_links = true});
  if (!file) return named(as_absent(file.error()), key);
  CAIRN_TRY_ASSIGN(const FileInfo info, named((*file)->info(), key));
  CAIRN_TRY(check_is_file(info.kind, key));
  return std::make_unique<LocalReader>(*std::move(file), info.size, describe(key));
}

Result<std::unique_ptr<ObjectWriter>> LocalStore::create(std::string_view key, std::uint64_t size) {
  CAIRN_TRY_ASSIGN(auto writer, begin(key, size, /*only_if_absent=*/false));
  CAIRN_TRY(writer->allocate());
  return writer;
}

Result<std::unique_ptr<ObjectWriter>> LocalStore::create_shared(std::string_view key,
                                                                std::uint64_t size) {
  if (!private_) return Store::create_shared(key, size);
  CAIRN_TRY(check_writable(key));
  auto writer = std::make_unique<LocalWriter>(*this, std::string(key), size);
  auto opened = [&]() -> Result<void> {
    CAIRN_TRY(directories_.ensure(parent_of(key)));
    CAIRN_TRY_ASSIGN(auto file, fs_.open(root_.get(), std::string(key), kSharedFile));
    writer->take(std::move(file), std::string(key), Arrival::kShared);
    return writer->allocate();
  }();
  CAIRN_TRY(named(std::move(opened), key));
  return writer;
}

Result<ObjectInfo> LocalStore::put(std::string_view key, ByteSpan bytes,
                                   const Condition& condition) {
  if (condition.generation) {
    return Error(Code::kUnimplemented, "storage/no-condition",
                 "a file system cannot replace an object on condition of its generation")
        .in(describe(key));
  }
  auto done = [&]() -> Result<ObjectInfo> {
    CAIRN_TRY_ASSIGN(auto writer, begin(key, bytes.size(), condition.absent));
    CAIRN_TRY(writer->write_at(0, bytes));
    CAIRN_TRY(writer->finish());
    return writer->result();
  }();
  if (!done && condition.absent && done.error().reason() == "fs/exists") {
    return condition_failed(describe(key));
  }
  return done;
}

Result<std::unique_ptr<LocalWriter>> LocalStore::begin(std::string_view key, std::uint64_t size,
                                                       bool only_if_absent) {
  CAIRN_TRY(check_writable(key));
  auto writer = std::make_unique<LocalWriter>(*this, std::string(key), size);
  auto opened = open_new(*writer, std::string(key), only_if_absent);
  if (!opened && opened.error().code() == Code::kNotFound) {
    directories_.forget();
    opened = open_new(*writer, std::string(key), only_if_absent);
  }
  CAIRN_TRY(named(std::move(opened), key));
  return writer;
}

Result<void> LocalStore::open_new(LocalWriter& writer, const std::string& key,
                                  bool only_if_absent) {
  CAIRN_TRY(directories_.ensure(parent_of(key)));
  if (private_) {
    auto file = fs_.open(root_.get(), key, kNewFile);
    if (file) {
      writer.take(*std::move(file), key, Arrival::kInPlace);
      return {};
    }
    if (file.error().reason() != "fs/exists" || only_if_absent) return std::move(file).error();
  }
  auto before = fs_.stat(root_.get(), key, /*follow_links=*/false);
  if (before) CAIRN_TRY(check_no_link(before->kind, key));
  if (!before && before.error().code() != Code::kNotFound) return std::move(before).error();
  CAIRN_TRY_ASSIGN(auto made, temporary_.make(parent_of(key)));
  writer.take(std::move(made.file), std::move(made.name),
              only_if_absent ? Arrival::kExclusive : Arrival::kReplace);
  return {};
}

Result<void> LocalStore::remove(std::string_view key) {
  CAIRN_TRY(check_writable(key));
  const std::string path(key);
  auto info = fs_.stat(root_.get(), path, /*follow_links=*/false);
  if (!info) return named(as_absent(info.error()), key);
  CAIRN_TRY(check_no_link(info->kind, key));
  CAIRN_TRY(check_is_file(info->kind, key));
  CAIRN_TRY(named(fs_.remove_file(root_.get(), path), key));
  directories_.names_changed_in(parent_of(key));
  return {};
}

Result<std::vector<ListEntry>> LocalStore::list(std::string_view directory, bool recursive) {
  if (!directory.empty()) CAIRN_TRY(check_key(directory, describe(directory)));
  return named(list_keys(fs_, *root_, std::string(directory), recursive), directory);
}

Result<void> LocalStore::sync() {
  auto done = batch_ ? root_->sync_file_system() : directories_.sync();
  if (!done) return as_storage_error(done.error(), done.error().where());
  return {};
}

}  // namespace

std::string generation_of(const FileInfo& info) {
  return fmt::format("{:x}-{:x}-{:x}", info.inode, info.modified_ns, info.size);
}

Result<std::unique_ptr<Store>> open_local_store(FileSystem& fs, const std::string& path,
                                                const LocalStoreOptions& options) {
  const std::size_t last = path.find_last_not_of('/');
  const std::string trimmed = path.substr(0, last == std::string::npos ? 1 : last + 1);
  auto opened = [&]() -> Result<std::unique_ptr<Store>> {
    if (options.create_root) CAIRN_TRY(make_directories(fs, trimmed));
    CAIRN_TRY_ASSIGN(auto root, fs.open(nullptr, trimmed, kFollowedDirectory));
    CAIRN_TRY_ASSIGN(const FileInfo info, fs.stat(nullptr, trimmed, /*follow_links=*/false));
    const bool is_link = info.kind == FileKind::kSymlink;
    return std::make_unique<LocalStore>(fs, trimmed, std::move(root), options, is_link);
  }();
  if (!opened) return as_storage_error(opened.error(), opened.error().where());
  return opened;
}

}  // namespace cairn::storage
