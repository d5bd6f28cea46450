// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/folding_file_system.h"

#include <algorithm>

namespace cairn::testing {

namespace {

using storage::File;

std::string folded(std::string path) {
  std::ranges::transform(path, path.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return path;
}

class FoldingFileSystem final : public storage::FileSystem {
 public:
  explicit FoldingFileSystem(FileSystem& under) : under_(under) {}

  Result<std::unique_ptr<File>> open(const File* at, const std::string& path,
                                     const storage::OpenOptions& options) override {
    return under_.open(at, folded(path), options);
  }
  Result<storage::FileInfo> stat(const File* at, const std::string& path,
                                 bool follow_links) override {
    return under_.stat(at, folded(path), follow_links);
  }
  Result<std::vector<storage::DirEntry>> list(const File& directory) override {
    return under_.list(directory);
  }
  Result<void> make_directory(const File* at, const std::string& path) override {
    return under_.make_directory(at, folded(path));
  }
  Result<void> remove_file(const File* at, const std::string& path) override {
    return under_.remove_file(at, folded(path));
  }
  Result<void> remove_directory(const File* at, const std::string& path) override {
    return under_.remove_directory(at, folded(path));
  }
  Result<void> rename(const File* from_at, const std::string& from, const File* to_at,
                      const std::string& to) override {
    return under_.rename(from_at, folded(from), to_at, folded(to));
  }
  Result<void> link(const File* from_at, const std::string& from, const File* to_at,
                    const std::string& to) override {
    return under_.link(from_at, folded(from), to_at, folded(to));
  }
  Result<storage::SpaceInfo> space(const File& file) override { return under_.space(file); }

 private:
  FileSystem& under_;
};

}  // namespace

std::unique_ptr<storage::FileSystem> fold_names(storage::FileSystem& under) {
  return std::make_unique<FoldingFileSystem>(under);
}

}  // namespace cairn::testing
