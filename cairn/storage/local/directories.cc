// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/local/directories.h"

namespace cairn::storage {

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? "" : path.substr(0, slash));
}

Result<void> make_directories(FileSystem& fs, const std::string& path) {
  const std::string above = parent_of(path);
  auto made = fs.make_directory(nullptr, path);
  if (!made && made.error().reason() == "fs/not-found" && !above.empty()) {
    CAIRN_TRY(make_directories(fs, above));
    made = fs.make_directory(nullptr, path);
  }
  if (!made && made.error().reason() == "fs/exists") return {};
  CAIRN_TRY(std::move(made));
  const std::string parent = !above.empty() ? above : path.starts_with('/') ? "/" : ".";
  CAIRN_TRY_ASSIGN(
      auto directory,
      fs.open(nullptr, parent, {.access = OpenOptions::Access::kDirectory, .follow_links = true}));
  return directory->sync();
}

Result<void> Directories::ensure(const std::string& directory) {
  if (directory.empty() || knows(directory)) return {};
  for (std::size_t end = 0; end != std::string::npos;) {
    end = directory.find('/', end + 1);
    const std::string part = directory.substr(0, end);
    if (knows(part)) continue;
    auto made = fs_.make_directory(&root_, part);
    if (!made && made.error().reason() != "fs/exists") return made;
    // One that was there may be another writer's, and not durable yet.
    names_changed_in(parent_of(part));
    MutexLock lock(mutex_);
    known_.insert(part);
  }
  return {};
}

bool Directories::knows(const std::string& directory) {
  MutexLock lock(mutex_);
  return known_.contains(directory);
}

void Directories::forget() {
  MutexLock lock(mutex_);
  known_.clear();
}

void Directories::names_changed_in(const std::string& directory) {
  MutexLock lock(mutex_);
  changed_.insert(directory);
}

Result<void> Directories::sync() {
  std::set<std::string> changed;
  {
    MutexLock lock(mutex_);
    changed.swap(changed_);
  }
  auto done = sync_each(changed);
  if (!done) {
    MutexLock lock(mutex_);
    changed_.merge(changed);
  }
  return done;
}

Result<void> Directories::sync_each(const std::set<std::string>& directories) {
  // Backwards, a directory comes after those below it.
  for (auto name = directories.rbegin(); name != directories.rend(); ++name) {
    auto opened =
        fs_.open(&root_, name->empty() ? "." : *name, {.access = OpenOptions::Access::kDirectory});
    // Whoever removed it took its names away.
    if (!opened && opened.error().code() == Code::kNotFound) continue;
    CAIRN_TRY_ASSIGN(const auto directory, std::move(opened));
    CAIRN_TRY(directory->sync());
  }
  return {};
}

}  // namespace cairn::storage
