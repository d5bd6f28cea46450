// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/check_entries.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "cairn/base/utf8.h"
#include "cairn/commit/merge.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

/// What another system's index lists; read once. One that cannot be read lists nothing.
class ListedPrefixes {
 public:
  explicit ListedPrefixes(const Directory& dest) : dest_(dest) {}

  Result<bool> has(const std::string& prefix) {
    if (!read_) {
      CAIRN_TRY_ASSIGN(const auto text, dest_.read(std::string(kIndexName), kMaxEformerIndexBytes));
      auto index = text ? parse_eformer_index(*text) : EformerIndex{};
      if (index) index_ = *std::move(index);
      read_ = true;
    }
    return index_.find(prefix) != nullptr;
  }

 private:
  const Directory& dest_;
  bool read_ = false;
  EformerIndex index_;
};

Result<void> check_replaceable(const Directory& dest, ListedPrefixes& listed,
                               const std::string& name, const std::string& prefix) {
  CAIRN_TRY_ASSIGN(const bool there, dest.exists(name));
  if (!there || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"))
    return {};
  CAIRN_TRY_ASSIGN(const bool known, listed.has(prefix));
  if (known) return {};
  return Error(
      Code::kAlreadyExists, "commit/foreign-entry",
      fmt::format("{} exists and is no part of a checkpoint; nothing was touched: choose another "
                  "prefix or directory, or move it away",
                  dest.path_of(name)));
}

using Names = std::set<std::string, std::less<>>;

Names entries_of(const Record& record) {
  Names names;
  for (const RecordPrefix& prefix : record.prefixes)
    names.insert(prefix.entries.begin(), prefix.entries.end());
  return names;
}

class MoveCheck {
 public:
  MoveCheck(const Directory& dest, const std::string& attempt, const Outcome& outcome)
      : dest_(dest), attempt_(attempt), outcome_(outcome), listed_(dest) {}

  Result<void> run() {
    CAIRN_TRY_ASSIGN(const auto staged,
                     dest_.read(attempt_ + "/new/" + std::string(kRecordName), kMaxRecordBytes));
    if (!staged) return {};  // moved in after everything else, but for the mark
    CAIRN_TRY_ASSIGN(const Record after, parse_record(*staged));
    coming_ = entries_of(after);
    in_.insert(outcome_.in.begin(), outcome_.in.end());
    out_.insert(outcome_.out.begin(), outcome_.out.end());
    CAIRN_TRY_ASSIGN(const auto in_place, dest_.read(std::string(kRecordName), kMaxRecordBytes));
    if (in_place) {
      CAIRN_TRY_ASSIGN(before_, parse_record(*in_place));
    }
    ours_ = entries_of(before_);
    add_files_beside();
    for (const std::string& name : outcome_.out) CAIRN_TRY(check_out(name));
    for (const std::string& name : outcome_.in) CAIRN_TRY(check_in(name));
    return {};
  }

 private:
  void add_files_beside() {
    ours_.insert({std::string(kMarkName), std::string(kTornMarkName)});
    if (before_.prefixes.empty()) return;
    ours_.insert({std::string(kIndexName), std::string(kCheckpointMetadataName)});
    for (const RecordPrefix& prefix : before_.prefixes) ours_.insert(structure_name(prefix.name));
  }

  Result<void> check_out(const std::string& name) {
    if (ours_.contains(name)) return {};
    CAIRN_TRY_ASSIGN(const bool there, dest_.exists(name));
    CAIRN_TRY_ASSIGN(const bool waiting, is_waiting(name));
    const bool replaced = in_.contains(name);
    if (!there || (replaced && !waiting)) return {};  // has moved
    for (const std::string& prefix : outcome_.prefixes) {
      if (!replaced && name != structure_name(prefix)) continue;
      if (check_replaceable(dest_, listed_, name, prefix)) return {};
    }
    return refuse("take away", name);
  }

  Result<void> check_in(const std::string& name) const {
    CAIRN_TRY_ASSIGN(const bool waiting, is_waiting(name));
    if (!waiting) return {};
    if (!coming_.contains(name)) return refuse("put in", name);
    if (out_.contains(name)) return {};
    CAIRN_TRY_ASSIGN(const bool there, dest_.exists(name));
    return there ? refuse("overwrite", name) : Result<void>();
  }

  Result<bool> is_waiting(const std::string& name) const {
    return dest_.exists(attempt_ + "/new/" + name);
  }

  Error refuse(const char* what, const std::string& name) const {
    return Error(
        Code::kFailedPrecondition, "commit/unknown-entry",
        fmt::format("{} holds an interrupted save that would {} '{}', which belongs to no "
                    "checkpoint here; nothing was touched: if the directory was copied from "
                    "elsewhere, remove {}; else move '{}' away",
                    dest_.path(), what, printable(name), dest_.path_of(attempt_), printable(name)));
  }

  const Directory& dest_;
  const std::string& attempt_;
  const Outcome& outcome_;
  ListedPrefixes listed_;
  Record before_;
  Names ours_;
  Names coming_;
  Names in_;
  Names out_;
};

}  // namespace

Result<void> check_replaceable(const Directory& dest, const std::string& name,
                               const std::string& prefix) {
  ListedPrefixes listed(dest);
  return check_replaceable(dest, listed, name, prefix);
}

Result<void> check_no_link(const Directory& dest, const std::string& name) {
  const auto info = dest.stat(name);
  if (!info || info->kind != storage::FileKind::kSymlink) return {};
  return Error(Code::kFailedPrecondition, "commit/symlink",
               fmt::format("{} is a symbolic link, and nothing is written or deleted through one; "
                           "nothing was touched: save to the place it leads to, or remove it",
                           dest.path_of(name)));
}

Result<void> check_entries(const Directory& dest, const std::vector<RecordPrefix>& saved,
                           const Record& before) {
  CAIRN_TRY(check_nesting(saved, before));
  ListedPrefixes listed(dest);
  for (const RecordPrefix& prefix : saved) {
    const RecordPrefix* replaced = before.find(prefix.name);
    const Names ours =
        replaced != nullptr ? Names(replaced->entries.begin(), replaced->entries.end()) : Names();
    for (const std::string& entry : prefix.entries) {
      if (!ours.contains(entry)) CAIRN_TRY(check_replaceable(dest, listed, entry, prefix.name));
    }
  }
  return {};
}

Result<void> check_moves(const Directory& dest, const std::string& attempt,
                         const Outcome& outcome) {
  return MoveCheck(dest, attempt, outcome).run();
}

}  // namespace cairn
