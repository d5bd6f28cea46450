// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/listing.h"

#include <algorithm>
#include <optional>

#include "cairn/base/uri.h"
#include "cairn/storage/local/temporary_files.h"

namespace cairn::storage {
namespace {

bool is_absent(const Error& error) {
  return error.code() == Code::kNotFound || error.reason() == "fs/not-a-directory" ||
         error.reason() == "fs/symlink";
}

struct Child {
  std::string name;
  bool through_link = false;
};

class Walk {
 public:
  Walk(FileSystem& fs, const File& root, bool recursive)
      : fs_(fs), root_(root), recursive_(recursive) {}

  Result<void> visit(const std::string& directory, bool through_link) {
    std::vector<Child> children;
    {
      auto opened = fs_.open(&root_, directory.empty() ? "." : directory,
                             {.access = OpenOptions::Access::kDirectory, .follow_links = true});
      if (!opened && is_absent(opened.error())) return {};
      if (!opened) return std::move(opened).error();
      CAIRN_TRY_ASSIGN(const FileInfo here, (*opened)->info());
      if (on_the_way(here)) return {};
      way_.push_back(here);
      CAIRN_TRY_ASSIGN(const std::vector<DirEntry> entries, fs_.list(**opened));
      for (const DirEntry& entry : entries) {
        CAIRN_TRY(add(**opened, directory, entry, children));
      }
    }
    // Here the directory is closed: a deep tree does not use up the descriptors.
    for (const Child& child : children) {
      if (child.through_link && through_link) continue;
      CAIRN_TRY(visit(join_path(directory, child.name), through_link || child.through_link));
    }
    way_.pop_back();
    return {};
  }

  std::vector<ListEntry> take() && {
    std::ranges::sort(found_, {}, &ListEntry::key);
    return std::move(found_);
  }

 private:
  bool on_the_way(const FileInfo& directory) const {
    return std::ranges::any_of(way_, [&](const FileInfo& above) {
      return above.device == directory.device && above.inode == directory.inode;
    });
  }

  Result<void> add(const File& opened, const std::string& directory, const DirEntry& entry,
                   std::vector<Child>& children) {
    if (entry.name.starts_with(kTemporaryPrefix)) return {};
    auto info = fs_.stat(&opened, entry.name, /*follow_links=*/true);
    if (!info && is_absent(info.error())) return {};
    if (!info) return std::move(info).error();
    if (info->kind == FileKind::kFile) {
      found_.push_back({join_path(directory, entry.name), false, info->size});
    } else if (info->kind == FileKind::kDirectory && recursive_) {
      children.push_back({entry.name, entry.kind == FileKind::kSymlink});
    } else if (info->kind == FileKind::kDirectory) {
      found_.push_back({join_path(directory, entry.name), true, 0});
    }
    return {};
  }

  FileSystem& fs_;
  const File& root_;
  const bool recursive_;
  std::vector<FileInfo> way_;
  std::vector<ListEntry> found_;
};

}  // namespace

Result<std::vector<ListEntry>> list_keys(FileSystem& fs, const File& root,
                                         const std::string& directory, bool recursive) {
  Walk walk(fs, root, recursive);
  CAIRN_TRY(walk.visit(directory, false));
  return std::move(walk).take();
}

}  // namespace cairn::storage
