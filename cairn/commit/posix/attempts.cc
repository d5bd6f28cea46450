// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/attempts.h"

#include <algorithm>
#include <utility>

#include "cairn/commit/posix/check_entries.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/commit/rank_files.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

bool is_attempt_name(const std::string& name) {
  // ".cairn-" and 32 hex digits; .cairn-lock, .cairn-trash and temporary names are something else.
  constexpr std::size_t kDigits = 32;
  return name.starts_with(kAttemptPrefix) && name.size() == kAttemptPrefix.size() + kDigits &&
         name.find_first_not_of("0123456789abcdef", kAttemptPrefix.size()) == std::string::npos;
}

Result<bool> is_locked(const Directory& dest, const std::string& file) {
  CAIRN_TRY_ASSIGN(const auto open, dest.fs().open(dest.handle(), file, {}));
  return open->is_locked_elsewhere();
}

bool is_lived_in(const Directory& dest, const std::string& attempt) {
  return is_locked(dest, attempt + "/" + std::string(kAttemptFile)).value_or(false) ||
         has_live_ranks(dest, attempt);
}

Result<std::optional<FoundAttempt>> look_at(const Directory& dest, const std::string& name) {
  FoundAttempt found;
  found.directory = name;
  const std::string file = name + "/" + std::string(kAttemptFile);
  CAIRN_TRY_ASSIGN(const auto text, dest.read(file, kMaxAttemptFileBytes));
  if (!text) return std::optional<FoundAttempt>();
  auto parsed = parse_attempt_file(*text);
  found.view.id = name.substr(kAttemptPrefix.size());
  if (parsed) {
    found.file = *std::move(parsed);
    found.view.host = found.file.writer.host;
    found.view.process = found.file.writer.process;
    found.view.started = found.file.started;
    for (const auto& [prefix, before] : found.file.prefixes) found.view.prefixes.push_back(prefix);
  }
  CAIRN_TRY_ASSIGN(const auto decided,
                   dest.read(name + "/" + std::string(kOutcomeFile), kMaxAttemptFileBytes));
  if (decided) {
    CAIRN_TRY_ASSIGN(auto outcome, parse_outcome(*decided));
    found.view.state = outcome.commit ? AttemptState::kDecided : AttemptState::kAbandoned;
    if (outcome.commit) found.outcome = std::move(outcome);
    return std::optional(std::move(found));
  }
  auto alive = is_locked(dest, file);
  if (!alive) {
    if (alive.error().code() == Code::kNotFound) return std::optional<FoundAttempt>();
    return std::move(alive).error();
  }
  found.view.state = *alive ? AttemptState::kAlive : AttemptState::kDead;
  return std::optional(std::move(found));
}

Result<void> finish_decided(const Directory& dest, const FoundAttempt& attempt) {
  // The decision may have been seen but not made durable by whoever took it.
  CAIRN_TRY_ASSIGN(const auto file,
                   dest.open_file(attempt.directory + "/" + std::string(kOutcomeFile), false));
  CAIRN_TRY(file->sync());
  CAIRN_TRY(dest.sync(attempt.directory));
  CAIRN_TRY(dest.sync());
  CAIRN_TRY(check_moves(dest, attempt.directory, *attempt.outcome));
  return finish_attempt(dest, attempt.directory, *attempt.outcome);
}

}  // namespace

Result<std::vector<FoundAttempt>> find_attempts(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto entries, dest.list());
  std::vector<FoundAttempt> attempts;
  for (const storage::DirEntry& entry : entries) {
    if (entry.kind != storage::FileKind::kDirectory || !is_attempt_name(entry.name)) continue;
    CAIRN_TRY_ASSIGN(auto found, look_at(dest, entry.name));
    if (found) attempts.push_back(*std::move(found));
  }
  return attempts;
}

namespace {

// Whoever was here before may have been killed when it had buried its attempt and not yet synced.
// After a power cut that would be there again, beside the next decided one, or with its trash
// emptied.
Result<std::vector<FoundAttempt>> find_lasting_attempts(const Directory& dest) {
  CAIRN_TRY(dest.sync());
  return find_attempts(dest);
}

}  // namespace

bool has_live_ranks(const Directory& dest, const std::string& attempt) {
  const std::string ranks = attempt + "/" + std::string(kRanksDirectory);
  const auto entries = dest.list(ranks);
  return entries && std::ranges::any_of(*entries, [&](const storage::DirEntry& entry) {
           return is_locked(dest, ranks + "/" + entry.name).value_or(false);
         });
}

Result<void> finish_all_decided(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto attempts, find_lasting_attempts(dest));
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kDecided) CAIRN_TRY(finish_decided(dest, attempt));
  }
  return {};
}

Result<RecoveryReport> recover_locked(const Directory& dest) {
  CAIRN_TRY_ASSIGN(const auto attempts, find_lasting_attempts(dest));
  RecoveryReport report;
  for (const FoundAttempt& attempt : attempts) {
    if (attempt.view.state == AttemptState::kDecided) {
      CAIRN_TRY(finish_decided(dest, attempt));
      report.finished.push_back(attempt.view.id);
    } else if (attempt.view.state == AttemptState::kDead ||
               (attempt.view.state == AttemptState::kAbandoned &&
                !is_lived_in(dest, attempt.directory))) {
      CAIRN_TRY(discard_attempt(dest, attempt.directory));
      report.removed.push_back(attempt.view.id);
    }
  }
  // What a crash left in the trash is hidden already.
  dest.remove_tree(std::string(kTrashName)).ignore_error("only space is at stake");
  return report;
}

}  // namespace cairn
