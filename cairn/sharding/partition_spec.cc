// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/partition_spec.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/sharding/mesh.h"
#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

Error bad_entry(std::size_t dim, const Json& found) {
  return refuse("spec/bad-entry",
                fmt::format("entry {} of a partition spec holds {}; an entry is null, the name of "
                            "an axis, or a list of names",
                            dim, found.kind_name()));
}

Result<void> check_count(std::string_view what, std::size_t count, std::size_t most) {
  if (count <= most) return {};
  return refuse("spec/too-long", fmt::format("{} of a partition spec: {}, at most {} are possible",
                                             what, count, most));
}

Result<PartitionSpec::Entry> read_entry(std::size_t dim, const Json& json) {
  if (json.is_null()) return PartitionSpec::Entry{};
  if (const std::string* name = json.text()) return PartitionSpec::Entry{*name};
  if (json.array() == nullptr) return bad_entry(dim, json);
  CAIRN_TRY(check_count("axes in one entry", json.array()->size(), Mesh::kMaxAxes));
  PartitionSpec::Entry entry;
  for (const Json& name : *json.array()) {
    if (name.text() == nullptr) return bad_entry(dim, name);
    entry.push_back(*name.text());
  }
  return entry;
}

Json write_entry(const PartitionSpec::Entry& entry) {
  if (entry.empty()) return nullptr;
  if (entry.size() == 1) return entry.front();
  return Json::Array(entry.begin(), entry.end());
}

std::string show_entry(const PartitionSpec::Entry& entry) {
  if (entry.empty()) return "None";
  const std::string names = fmt::format("'{}'", fmt::join(entry, "', '"));
  return entry.size() == 1 ? names : fmt::format("({})", names);
}

}  // namespace

Result<PartitionSpec> PartitionSpec::from_json(const Json& json) {
  if (json.array() == nullptr) {
    return refuse("spec/not-a-list",
                  fmt::format("a partition spec is a list such as [\"fsdp\", null, [\"dp\", "
                              "\"tp\"]], not {}",
                              json.kind_name()));
  }
  CAIRN_TRY(check_count("entries", json.array()->size(), kMaxRank));
  std::vector<Entry> entries;
  for (const Json& item : *json.array()) {
    CAIRN_TRY_ASSIGN(Entry entry, read_entry(entries.size(), item));
    entries.push_back(std::move(entry));
  }
  return PartitionSpec(std::move(entries));
}

Json PartitionSpec::to_json() const {
  Json::Array entries;
  for (const Entry& entry : entries_) entries.push_back(write_entry(entry));
  return entries;
}

PartitionSpec PartitionSpec::trimmed(std::size_t rank) const {
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(rank, size()));
  return PartitionSpec(std::vector<Entry>(entries_.begin(), end));
}

std::string PartitionSpec::to_string() const {
  std::string text = "P(";
  for (std::size_t i = 0; i < size(); ++i) text += (i == 0 ? "" : ", ") + show_entry(entries_[i]);
  return text + ")";
}

}  // namespace cairn
