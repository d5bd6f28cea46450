// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/posix/take_out.h"

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/posix/check_entries.h"
#include "cairn/commit/posix/moves.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

class TakeOut {
 public:
  TakeOut(const Directory& dest, const Record& record, const std::vector<std::string>& files)
      : dest_(dest), record_(record), files_(files) {}

  Result<void> run(Clock& clock) {
    CAIRN_TRY(list_what_goes());
    CAIRN_TRY(dest_.make(hidden_ + "/new"));
    CAIRN_TRY(dest_.make(hidden_ + "/old"));
    CAIRN_TRY(stage_record());
    CAIRN_TRY(describe(clock));
    for (const char* const part : {"/new", "/old", ""}) CAIRN_TRY(dest_.sync(hidden_ + part));
    const std::string name = std::string(kAttemptPrefix) + id_;
    CAIRN_TRY(dest_.rename(hidden_, name));
    CAIRN_TRY(dest_.sync());
    return finish_attempt(dest_, name, outcome_);
  }

 private:
  Result<void> list_what_goes() {
    outcome_.commit = true;
    for (const std::string& file : files_) {
      CAIRN_TRY_ASSIGN(const bool there, dest_.exists(file));
      if (there) outcome_.out.push_back(file);
    }
    for (const RecordPrefix& prefix : record_.prefixes) {
      for (const std::string& entry : prefix.entries) {
        CAIRN_TRY(check_no_link(dest_, entry));
        outcome_.out.push_back(entry);
      }
    }
    return {};
  }

  Result<void> stage_record() const {
    Record record = record_;
    record.prefixes.clear();
    record.generation += 1;
    CAIRN_TRY_ASSIGN(const std::string text, dump_record(record));
    return dest_.write_synced(hidden_ + "/new/" + std::string(kRecordName), text);
  }

  Result<void> describe(Clock& clock) const {
    AttemptFile file;
    file.id = id_;
    file.writer = this_process();
    file.started = format_timestamp(clock.wall());
    file.generation = record_.generation;
    CAIRN_TRY_ASSIGN(const std::string text, dump_attempt_file(file));
    CAIRN_TRY(dest_.write_synced(hidden_ + "/" + std::string(kAttemptFile), text));
    CAIRN_TRY_ASSIGN(const std::string outcome, dump_outcome(outcome_));
    return dest_.write_synced(hidden_ + "/" + std::string(kOutcomeFile), outcome);
  }

  const Directory& dest_;
  const Record& record_;
  const std::vector<std::string>& files_;
  const std::string id_ = new_id();
  const std::string hidden_ = std::string(kTrashName) + "/" + id_;
  Outcome outcome_;
};

}  // namespace

Result<void> take_out(const Directory& dest, const Record& record,
                      const std::vector<std::string>& files, Clock& clock) {
  return TakeOut(dest, record, files).run(clock);
}

}  // namespace cairn
