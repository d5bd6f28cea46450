// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/temporary_files.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cairn/base/crc32c.h"
#include "cairn/base/uri.h"

namespace cairn::storage {
namespace {

std::string prefix_of_host() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return fmt::format("{}{:08x}-", kTemporaryPrefix, crc32c(as_bytes(std::string(name.data()))));
}

/// What others did meanwhile, forbid or cannot do is no reason not to save.
Result<void> tolerate(Result<void> done) {
  if (done) return done;
  const Code code = done.error().code();
  const bool harmless = code == Code::kNotFound || code == Code::kPermissionDenied ||
                        done.error().reason() == "fs/unsupported";
  return harmless ? Result<void>() : done;
}

}  // namespace

TemporaryFiles::TemporaryFiles(FileSystem& fs, const File& root)
    : fs_(fs), root_(root), prefix_(prefix_of_host()) {}

// Names repeat after a crash and in other containers; whoever finds one taken goes on to the next.
Result<TemporaryFiles::Made> TemporaryFiles::make(const std::string& directory) {
  const bool first = [&] {
    MutexLock lock(mutex_);
    return visited_.insert(directory).second;
  }();
  if (first) CAIRN_TRY(tolerate(remove_abandoned(directory)));
  while (true) {
    std::string name = join_path(directory, fmt::format("{}{}-{}", prefix_, ::getpid(), next_++));
    auto file = fs_.open(&root_, name, kNewFile);
    if (!file && file.error().reason() == "fs/exists") continue;
    if (!file) return std::move(file).error();
    const auto locked = (*file)->try_lock();
    if (!locked && locked.error().reason() != "fs/unsupported") return locked.error();
    CAIRN_TRY_ASSIGN(const bool there, has_name(**file, name));
    if (there && (!locked || *locked)) return Made{*std::move(file), std::move(name)};
  }
}

Result<bool> TemporaryFiles::has_name(File& file, const std::string& name) {
  CAIRN_TRY_ASSIGN(const FileInfo open, file.info());
  const auto named = fs_.stat(&root_, name, /*follow_links=*/false);
  if (named) return named->inode == open.inode && named->device == open.device;
  if (named.error().code() == Code::kNotFound) return false;
  return named.error();
}

Result<void> TemporaryFiles::remove_abandoned(const std::string& directory) {
  CAIRN_TRY_ASSIGN(const auto opened, fs_.open(&root_, directory.empty() ? "." : directory,
                                               {.access = OpenOptions::Access::kDirectory}));
  CAIRN_TRY_ASSIGN(const auto entries, fs_.list(*opened));
  for (const DirEntry& entry : entries) {
    if (entry.kind != FileKind::kFile || !entry.name.starts_with(prefix_)) continue;
    CAIRN_TRY(tolerate(remove_if_abandoned(join_path(directory, entry.name))));
  }
  return {};
}

Result<void> TemporaryFiles::remove_if_abandoned(const std::string& name) {
  CAIRN_TRY_ASSIGN(const auto file,
                   fs_.open(&root_, name, {.access = OpenOptions::Access::kReadWrite}));
  CAIRN_TRY_ASSIGN(const bool abandoned, file->try_lock());
  if (!abandoned) return {};
  CAIRN_TRY_ASSIGN(const bool there, has_name(*file, name));
  return there ? fs_.remove_file(&root_, name) : Result<void>();
}

}  // namespace cairn::storage
