// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/damage_note.h"

#include "cairn/base/json.h"
#include "cairn/commit/posix/attempts.h"
#include "cairn/commit/posix/directory.h"
#include "cairn/commit/posix/take_snapshot.h"
#include "cairn/manifest/names.h"
#include "cairn/run/locked_checkpoint.h"

namespace cairn {

namespace {

constexpr std::size_t kMaxNoteBytes = 64 * kKiB;
constexpr std::size_t kLongestSentence = 4 * kKiB;

}  // namespace

Result<void> note_damage(const std::string& path, const std::string& why, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const LocalPath local, LocalPath::parse(path));
  CAIRN_TRY_ASSIGN(const Directory dest,
                   Directory::open(runtime.file_system(), local, /*create=*/false));
  CAIRN_TRY_ASSIGN(const auto lock, DirectoryLock::acquire(dest, runtime.clock(), kLockTimeout));
  // Moves that are not finished would make it another version when they are.
  CAIRN_TRY(finish_all_decided(dest));
  CAIRN_TRY_ASSIGN(const Snapshot now, take_snapshot(runtime.file_system(), local));
  if (!now.record) return {};
  const Json note(
      Json::Object{{"version", now.version()}, {"damage", why.substr(0, kLongestSentence)}});
  return dest.replace(std::string(kDamageName), kAsideName, dump_json(note));
}

std::string find_damage(const LocalPath& path, const Snapshot& now, Runtime& runtime) {
  if (!now.record || !runtime.file_system().stat(nullptr, path.below(kDamageName), false))
    return {};
  const auto dest = Directory::open(runtime.file_system(), path, /*create=*/false);
  if (!dest) return {};
  const auto text = dest->read(std::string(kDamageName), kMaxNoteBytes);
  const auto json = text && *text ? parse_json(**text, {}) : Result<Json>(Json());
  const Json* version = json ? json->find("version") : nullptr;
  const Json* damage = json ? json->find("damage") : nullptr;
  const bool about_this =
      version != nullptr && version->text() != nullptr && *version->text() == now.version();
  return about_this && damage != nullptr && damage->text() != nullptr ? *damage->text() : "";
}

}  // namespace cairn
