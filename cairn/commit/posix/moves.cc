// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/moves.h"

#include <optional>
#include <set>
#include <vector>

#include "cairn/base/sha256.h"
#include "cairn/commit/snapshot.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

class Moves {
 public:
  Moves(const Directory& dest, const std::string& attempt, const Outcome& outcome)
      : dest_(dest), new_(attempt + "/new/"), old_(attempt + "/old/"), outcome_(outcome) {}

  Result<void> run() {
    CAIRN_TRY(mark_out());
    // The record comes in after all it names: without one in new/, only the mark is left to do.
    CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(new_ + std::string(kRecordName)));
    if (waiting) {
      CAIRN_TRY(entries_out());
      CAIRN_TRY(entries_in());
      for (const ReplacedFile& file : outcome_.files) CAIRN_TRY(replace(file));
      CAIRN_TRY(move_in(std::string(kRecordName), std::string(kRecordName)));
    }
    CAIRN_TRY(dest_.sync());
    CAIRN_TRY(move_in(std::string(kStagedMark), std::string(kMarkName)));
    return dest_.sync();
  }

 private:
  // The old mark leaves first, so that nobody takes a mixture for the checkpoint it marked. One
  // that a client wrote after the decision was prepared stays, and ours is dropped.
  Result<void> mark_out() {
    const std::string staged = new_ + std::string(kStagedMark);
    CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(staged));
    if (!outcome_.mark || !waiting) return {};
    CAIRN_TRY_ASSIGN(const auto there, dest_.read(std::string(kMarkName), kMaxMarkBytes));
    if (!there) return {};
    const std::string digest = sha256_hex(as_bytes(*there));
    if (digest != outcome_.mark->from && digest != outcome_.mark->to)
      return dest_.remove_tree(staged);
    CAIRN_TRY(dest_.rename(std::string(kMarkName), old_ + std::string(kMarkName)));
    CAIRN_TRY(dest_.sync(old_));
    return dest_.sync();
  }

  Result<void> entries_out() {
    const std::set<std::string> in(outcome_.in.begin(), outcome_.in.end());
    std::set<std::string> changed;
    for (const std::string& name : outcome_.out) {
      CAIRN_TRY_ASSIGN(const bool there, dest_.exists(name));
      CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(new_ + name));
      const bool replaced = in.contains(name);
      // A name that comes in as well and does not wait any more has moved already: this is the new
      // one.
      if (!there || (replaced && !waiting)) continue;
      CAIRN_TRY(set_aside(name));
      changed.insert(parent_name(name));
      changed.insert(parent_name(old_ + name));
    }
    for (const std::string& directory : changed) CAIRN_TRY(dest_.sync(directory));
    return {};
  }

  Result<void> set_aside(const std::string& name) {
    std::string to = old_ + name;
    CAIRN_TRY_ASSIGN(bool taken, dest_.exists(to));
    for (int n = 1; taken; ++n) {
      to = old_ + name + "~" + std::to_string(n);
      CAIRN_TRY_ASSIGN(taken, dest_.exists(to));
    }
    CAIRN_TRY(dest_.make(parent_name(to)));
    auto moved = dest_.rename(name, to);
    // Readers read through the attempt meanwhile.
    return is_unmovable(moved) ? dest_.remove_tree(name) : moved;
  }

  Result<void> entries_in() {
    std::set<std::string> changed{parent_name(new_ + "x")};
    for (const std::string& name : outcome_.in) {
      CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(new_ + name));
      if (!waiting) continue;
      CAIRN_TRY(dest_.make(parent_name(name)));
      CAIRN_TRY(dest_.rename(new_ + name, name));
      for (std::string above = parent_name(name);; above = parent_name(above)) {
        changed.insert(above);
        if (above == ".") break;
      }
    }
    for (const std::string& directory : changed) CAIRN_TRY(dest_.sync(directory));
    return {};
  }

  Result<void> replace(const ReplacedFile& file) {
    CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(new_ + file.name));
    if (!waiting) return {};
    CAIRN_TRY_ASSIGN(const auto there, dest_.read(file.name, kMaxEformerIndexBytes));
    const auto digest = there ? std::optional(sha256_hex(as_bytes(*there))) : std::nullopt;
    if (there && digest != file.from && digest != file.to && file.name == kIndexName) {
      CAIRN_TRY(merge_again(*there));
    }
    CAIRN_TRY(move_in(file.name, file.name));
    return dest_.sync();
  }

  // A client rewrote the index after ours was merged: its changes stay, our prefixes are put in
  // again.
  Result<void> merge_again(const std::string& current) {
    const std::string staged = new_ + std::string(kIndexName);
    CAIRN_TRY_ASSIGN(const auto text, dest_.read(staged, kMaxEformerIndexBytes));
    if (!text) return {};
    const auto ours = parse_json(*text, kEformerIndexLimits);
    if (!ours) return ours.error();
    IndexChanges changes;
    for (const std::string& prefix : outcome_.prefixes) {
      const Json* lists = prefix.empty() ? &*ours : ours->find("prefixes");
      const Json* list =
          lists != nullptr ? lists->find(prefix.empty() ? "arrays" : prefix) : nullptr;
      changes.emplace_back(prefix, list != nullptr ? std::optional(*list) : std::nullopt);
    }
    // An index that a client made too long for us stays as it is; the record knows our prefixes.
    const auto merged = merge_eformer_index(current, changes);
    const std::string aside = staged + ".merged";
    CAIRN_TRY(dest_.write_synced(aside, merged ? merged->value_or(current) : current));
    return dest_.rename(aside, staged);
  }

  Result<void> move_in(const std::string& staged, const std::string& name) {
    CAIRN_TRY_ASSIGN(const bool waiting, dest_.exists(new_ + staged));
    if (!waiting) return {};
    return dest_.rename(new_ + staged, name);
  }

  const Directory& dest_;
  const std::string new_;
  const std::string old_;
  const Outcome& outcome_;
};

}  // namespace

bool is_unmovable(const Result<void>& renamed) {
  return !renamed && renamed.error().reason() == "fs/cross-device";
}

Result<void> finish_attempt(const Directory& dest, const std::string& attempt,
                            const Outcome& outcome) {
  CAIRN_TRY(Moves(dest, attempt, outcome).run());
  return discard_attempt(dest, attempt);
}

Result<void> bury(const Directory& dest, const std::string& name, const std::string& id) {
  const std::string trash(kTrashName);
  const auto made = dest.make(trash);
  if (!made && made.error().code() == Code::kResourceExhausted) {
    CAIRN_TRY(dest.rename(name, trash));
    return dest.sync();
  }
  CAIRN_TRY(made);
  const std::string hidden = trash + "/" + id;
  CAIRN_TRY(dest.remove_tree(hidden));
  CAIRN_TRY(dest.rename(name, hidden));
  CAIRN_TRY(dest.sync(trash));
  return dest.sync();
}

Result<void> bury_or_remove(const Directory& dest, const std::string& name, const std::string& id) {
  auto buried = bury(dest, name, id);
  return is_unmovable(buried) ? dest.remove_tree(name) : buried;
}

Result<void> discard_attempt(const Directory& dest, const std::string& attempt) {
  CAIRN_TRY(bury_or_remove(dest, attempt, attempt.substr(kAttemptPrefix.size())));
  // From here on only space is at stake; whoever comes next tries again.
  dest.remove_tree(std::string(kTrashName)).ignore_error("the next save empties the trash");
  return {};
}

}  // namespace cairn
