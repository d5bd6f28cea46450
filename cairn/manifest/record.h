// SPDX-License-Identifier: Apache-2.0
// `cairn.json`, the record: which prefixes of a checkpoint are committed, and by which attempt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/json.h"

namespace cairn {

/// Version of the files that this library writes and the newest that it reads.
constexpr int kFormatVersion = 1;
/// Longest record that is written and read.
constexpr std::size_t kMaxRecordBytes = std::size_t{32} << 20;
/// Highest generation that is read. No checkpoint is ever saved so many times, and its successor
/// fits too.
constexpr std::uint64_t kMaxGeneration = std::uint64_t{1} << 53;
/// How many committed attempt ids a record remembers.
constexpr std::size_t kRememberedAttempts = 16;

struct RecordPrefix {
  std::string name;  ///< "" for the tree without a prefix
  std::string
      manifest;  ///< relative to the checkpoint; in the directory of its tree, if it has one
  std::uint64_t manifest_bytes = 0;
  std::string manifest_sha256;
  std::string attempt;  ///< the attempt that committed it
  std::vector<std::string>
      entries;  ///< files and directories that belong to it, relative, none inside another
};

struct Record {
  int format = kFormatVersion;
  std::string writer;
  std::string run_id;
  std::optional<std::int64_t> step;
  std::uint64_t generation = 0;  ///< raised by every commit
  std::vector<RecordPrefix> prefixes;
  std::vector<std::string> committed;  ///< newest last

  const RecordPrefix* find(std::string_view name) const;
};

/// Pure. `corrupt` (record/bad-json, record/bad-member, record/unsafe-name), `unimplemented`
/// (record/newer-format) which says the version that is needed.
Result<Record> parse_record(std::string_view text);
/// `invalid_argument` (record/too-many-names) for more than parse_record() would read.
Result<std::string> dump_record(const Record& record);

/// "cairn 0.1.0"
std::string writer_name();

}  // namespace cairn
