// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/own_files.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "cairn/base/uri.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

class Sorter {
 public:
  Sorter(Destination& dest, const Record& record) : dest_(dest), record_(record) {
    for (const RecordPrefix& prefix : record.prefixes)
      entries_.insert(prefix.entries.begin(), prefix.entries.end());
  }

  Result<OwnFiles> run() {
    OwnFiles own;
    CAIRN_TRY_ASSIGN(own.shared, is_shared());
    for (const std::string& name : known_files(own.shared)) {
      const auto info = dest_.stat(name);
      if (info) own.beside.push_back(name);
      if (!info && info.error().code() != Code::kNotFound) return info.error();
    }
    std::ranges::sort(own.beside);
    CAIRN_TRY(look_for_others("", own));
    return own;
  }

 private:
  std::vector<std::string> known_files(bool shared) const {
    std::vector<std::string> names{std::string(kMarkName), std::string(kTornMarkName)};
    if (record_.prefixes.empty() || shared) return names;
    names.emplace_back(kCheckpointMetadataName);
    names.emplace_back(kIndexName);
    for (const RecordPrefix& prefix : record_.prefixes) {
      if (!prefix.name.empty()) names.push_back(structure_name(prefix.name));
    }
    return names;
  }

  Result<bool> is_shared() const {
    CAIRN_TRY_ASSIGN(const auto text, dest_.read(std::string(kIndexName), kMaxEformerIndexBytes));
    if (!text) return false;
    const auto index = parse_eformer_index(*text);
    // Nobody knows what an index lists that cannot be read.
    if (!index) return true;
    if (index->arrays && !index->arrays->empty() && record_.find("") == nullptr) return true;
    std::set<std::string_view> recorded;
    for (const RecordPrefix& prefix : record_.prefixes) recorded.insert(prefix.name);
    return std::ranges::any_of(index->prefixes, [&](const IndexedPrefix& prefix) {
      return !recorded.contains(prefix.name);
    });
  }

  static bool is_own_file(const std::string& name, const OwnFiles& own) {
    return name.starts_with(kAttemptPrefix) || name == kRecordName ||
           std::ranges::binary_search(own.beside, name);
  }

  // A directory on the way to an entry is ours if everything in it is.
  Result<void> look_for_others(const std::string& directory, OwnFiles& own) const {
    CAIRN_TRY_ASSIGN(const auto names, dest_.list(directory));
    for (const Destination::Child& child : names) {
      if (!own.other.empty()) return {};
      const std::string name = join_path(directory, child.name);
      const bool link = child.kind == Destination::Child::Kind::kLink;
      const bool ours = entries_.contains(name) || (directory.empty() && is_own_file(name, own));
      if (ours && !link) continue;
      const auto below = entries_.lower_bound(name + "/");
      const bool on_the_way = below != entries_.end() && below->starts_with(name + "/");
      if (on_the_way && child.kind == Destination::Child::Kind::kDirectory) {
        CAIRN_TRY(look_for_others(name, own));
      } else {
        own.other = name;
      }
    }
    return {};
  }

  Destination& dest_;
  const Record& record_;
  std::set<std::string> entries_;
};

}  // namespace

Result<OwnFiles> find_own_files(Destination& dest, const Record& record) {
  return Sorter(dest, record).run();
}

}  // namespace cairn
