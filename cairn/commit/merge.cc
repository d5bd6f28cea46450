// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/merge.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

bool nests(std::string_view a, std::string_view b) {
  return a == b || (b.size() > a.size() && b.starts_with(a) && b[a.size()] == '/');
}

bool overlap(std::string_view a, std::string_view b) { return nests(a, b) || nests(b, a); }

/// Whose each entry is, so that one inside another is found without comparing all of them.
class EntryOwners {
 public:
  void add(const RecordPrefix& prefix) {
    for (const std::string& entry : prefix.entries) owners_.emplace(entry, prefix.name);
  }

  /// Another prefix than `prefix` with an entry that is `entry`, lies in it or has it inside.
  const std::string* other_than(const std::string& prefix, const std::string& entry) const {
    const std::string below = entry + "/";
    for (auto at = owners_.lower_bound(below); at != owners_.end() && at->first.starts_with(below);
         ++at) {
      if (at->second != prefix) return &at->second;
    }
    for (std::size_t end = entry.size(); end != std::string::npos && end > 0;
         end = entry.rfind('/', end - 1)) {
      const auto [first, last] = owners_.equal_range(entry.substr(0, end));
      for (auto at = first; at != last; ++at) {
        if (at->second != prefix) return &at->second;
      }
    }
    return nullptr;
  }

 private:
  std::multimap<std::string, std::string> owners_;  // entry to prefix
};

Error nested_error(std::string_view a, std::string_view b) {
  return Error(
      Code::kInvalidArgument, "prefix/nested",
      fmt::format("'{}' and '{}' would lie inside each other; choose names that do not nest", a,
                  b));
}

std::string committed_by(const Record& record, std::string_view prefix) {
  const RecordPrefix* found = record.find(prefix);
  return found != nullptr ? found->attempt : std::string();
}

}  // namespace

Result<void> check_prefixes(const std::vector<std::string>& prefixes) {
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    CAIRN_TRY(check_prefix(prefixes[i]));
    for (std::size_t j = 0; j < i; ++j) {
      const std::string a = prefix_directory(prefixes[j]);
      const std::string b = prefix_directory(prefixes[i]);
      if (a == b || (!a.empty() && !b.empty() && overlap(a, b)))
        return nested_error(prefixes[j], prefixes[i]);
    }
  }
  return {};
}

Result<void> check_nesting(const std::vector<RecordPrefix>& saved, const Record& before) {
  EntryOwners owners;
  for (const RecordPrefix& prefix : saved) owners.add(prefix);
  for (const RecordPrefix& prefix : before.prefixes) {
    if (std::ranges::find(saved, prefix.name, &RecordPrefix::name) == saved.end())
      owners.add(prefix);
  }
  for (const RecordPrefix& prefix : saved) {
    for (const std::string& entry : prefix.entries) {
      if (const std::string* other = owners.other_than(prefix.name, entry))
        return nested_error(prefix.name, *other);
    }
  }
  return {};
}

PrefixVersions versions_in(const Record& record, const std::vector<std::string>& prefixes) {
  PrefixVersions versions;
  for (const std::string& prefix : prefixes)
    versions.emplace_back(prefix, committed_by(record, prefix));
  return versions;
}

Result<void> check_versions(const PrefixVersions& versions, const Record& now) {
  for (const auto& [prefix, before] : versions) {
    if (committed_by(now, prefix) == before) continue;
    return Error(
        Code::kAlreadyExists, "commit/prefix-changed",
        fmt::format("prefix '{}' was saved by somebody else meanwhile; theirs stays", prefix));
  }
  return {};
}

Result<void> check_length(std::string_view name, std::size_t bytes, std::size_t limit) {
  if (bytes <= limit) return {};
  return Error(Code::kInvalidArgument, "commit/file-too-large",
               fmt::format("{} would have {}, and at most {} are read: save less metadata, or "
                           "fewer arrays in one directory",
                           name, format_bytes(bytes), format_bytes(limit)));
}

std::vector<RecordPrefix> records_of(const CommitRequest& request) {
  std::vector<RecordPrefix> records;
  records.reserve(request.prefixes.size());
  for (const CommitPrefix& prefix : request.prefixes) records.push_back(prefix.record);
  return records;
}

IndexChanges index_changes(const CommitRequest& request) {
  IndexChanges changes;
  for (const CommitPrefix& prefix : request.prefixes)
    changes.emplace_back(prefix.record.name, prefix.arrays);
  return changes;
}

Record merged_record(const CommitRequest& request, const std::string& attempt,
                     const std::string& run_id, Record record) {
  record.format = kFormatVersion;
  record.writer = writer_name();
  record.run_id = run_id;
  record.generation += 1;
  if (request.step) record.step = request.step;
  for (const CommitPrefix& prefix : request.prefixes) {
    RecordPrefix entry = prefix.record;
    entry.attempt = attempt;
    const auto found = std::ranges::find(record.prefixes, entry.name, &RecordPrefix::name);
    if (found != record.prefixes.end()) {
      *found = std::move(entry);
    } else {
      record.prefixes.push_back(std::move(entry));
    }
  }
  record.committed.push_back(attempt);
  if (record.committed.size() > kRememberedAttempts)
    record.committed.erase(record.committed.begin());
  return record;
}

}  // namespace cairn
