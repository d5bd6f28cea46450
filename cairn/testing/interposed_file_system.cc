// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/interposed_file_system.h"

#include <atomic>
#include <utility>

namespace cairn::testing {

namespace {

using storage::DirEntry;
using storage::File;
using storage::FileInfo;
using storage::FileSystem;
using storage::OpenOptions;
using storage::SpaceInfo;

class Teller {
 public:
  explicit Teller(std::function<void(std::size_t)> before) : before_(std::move(before)) {}
  void tell() {
    const std::size_t n = count_++;
    before_(n);
  }

 private:
  const std::function<void(std::size_t)> before_;
  std::atomic<std::size_t> count_{0};
};

class InterposedFile final : public File {
 public:
  InterposedFile(std::unique_ptr<File> under, std::shared_ptr<Teller> teller)
      : under_(std::move(under)), teller_(std::move(teller)) {}

  const File* under() const { return under_.get(); }

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteSpan out) override {
    teller_->tell();
    return under_->read_at(offset, out);
  }
  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    teller_->tell();
    return under_->write_at(offset, bytes);
  }
  Result<void> truncate(std::uint64_t size) override {
    teller_->tell();
    return under_->truncate(size);
  }
  Result<void> allocate(std::uint64_t size) override {
    teller_->tell();
    return under_->allocate(size);
  }
  Result<FileInfo> info() override {
    teller_->tell();
    return under_->info();
  }
  Result<void> sync() override {
    teller_->tell();
    return under_->sync();
  }
  Result<void> sync_file_system() override {
    teller_->tell();
    return under_->sync_file_system();
  }
  bool can_sync_file_system() const override { return under_->can_sync_file_system(); }
  Result<bool> try_lock() override {
    teller_->tell();
    return under_->try_lock();
  }
  Result<bool> is_locked_elsewhere() override {
    teller_->tell();
    return under_->is_locked_elsewhere();
  }

 private:
  const std::unique_ptr<File> under_;
  const std::shared_ptr<Teller> teller_;
};

const File* below(const File* file) {
  return file == nullptr ? nullptr : static_cast<const InterposedFile*>(file)->under();
}

class InterposedFileSystem final : public FileSystem {
 public:
  InterposedFileSystem(FileSystem& under, std::function<void(std::size_t)> before)
      : under_(under), teller_(std::make_shared<Teller>(std::move(before))) {}

  Result<std::unique_ptr<File>> open(const File* at, const std::string& path,
                                     const OpenOptions& options) override {
    teller_->tell();
    CAIRN_TRY_ASSIGN(auto file, under_.open(below(at), path, options));
    return std::unique_ptr<File>(std::make_unique<InterposedFile>(std::move(file), teller_));
  }
  Result<FileInfo> stat(const File* at, const std::string& path, bool follow_links) override {
    teller_->tell();
    return under_.stat(below(at), path, follow_links);
  }
  Result<std::vector<DirEntry>> list(const File& directory) override {
    teller_->tell();
    return under_.list(*below(&directory));
  }
  Result<void> make_directory(const File* at, const std::string& path) override {
    teller_->tell();
    return under_.make_directory(below(at), path);
  }
  Result<void> remove_file(const File* at, const std::string& path) override {
    teller_->tell();
    return under_.remove_file(below(at), path);
  }
  Result<void> remove_directory(const File* at, const std::string& path) override {
    teller_->tell();
    return under_.remove_directory(below(at), path);
  }
  Result<void> rename(const File* from_at, const std::string& from, const File* to_at,
                      const std::string& to) override {
    teller_->tell();
    return under_.rename(below(from_at), from, below(to_at), to);
  }
  Result<void> link(const File* from_at, const std::string& from, const File* to_at,
                    const std::string& to) override {
    teller_->tell();
    return under_.link(below(from_at), from, below(to_at), to);
  }
  Result<SpaceInfo> space(const File& file) override {
    teller_->tell();
    return under_.space(*below(&file));
  }

 private:
  FileSystem& under_;
  const std::shared_ptr<Teller> teller_;
};

}  // namespace

std::unique_ptr<storage::FileSystem> interpose(storage::FileSystem& under,
                                               std::function<void(std::size_t)> before) {
  return std::make_unique<InterposedFileSystem>(under, std::move(before));
}

}  // namespace cairn::testing
