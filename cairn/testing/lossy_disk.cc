// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/lossy_disk.h"

#include <algorithm>
#include <array>
#include <set>

namespace cairn::testing {
namespace {

constexpr std::uint64_t kBlock = 512;

void set_entry(LossyDisk::Entries& entries, const std::string& name,
               std::optional<LossyDisk::Id> id) {
  if (id) {
    entries[name] = *id;
  } else {
    entries.erase(name);
  }
}

/// Between nearly nothing and nearly all, so that long chains of changes survive sometimes, too.
std::bernoulli_distribution some_odds(std::mt19937_64& random) {
  constexpr std::array kOdds = {0.1, 0.5, 0.9};
  return std::bernoulli_distribution(kOdds.at(random() % kOdds.size()));
}

}  // namespace

LossyDisk::LossyDisk() { inodes_[kRoot] = {.directory = true, .links = 1}; }

std::optional<LossyDisk::Id> LossyDisk::find(const Slot& slot) const {
  const Entries& names = entries(slot.directory);
  const auto found = names.find(slot.name);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

bool LossyDisk::is_below(Id id, Id top) const {
  if (id == top) return true;
  return std::ranges::any_of(entries(top), [&](const auto& entry) {
    return is_directory(entry.second) && is_below(id, entry.second);
  });
}

LossyDisk::Id LossyDisk::make(bool directory) {
  inodes_[next_].directory = directory;
  touch(next_);
  return next_++;
}

void LossyDisk::change_names(std::vector<Effect> effects) {
  for (const auto& [slot, id] : effects) {
    if (const auto before = find(slot)) --inodes_.at(*before).links;
    if (id) ++inodes_.at(*id).links;
    set_entry(inodes_.at(slot.directory).entries, slot.name, id);
    touch(slot.directory);
  }
  pending_.push_back(std::move(effects));
}

void LossyDisk::apply(std::string& content, const Write& write) {
  if (write.truncates) {
    content.resize(write.offset);
    return;
  }
  content.resize(std::max<std::size_t>(content.size(), write.offset + write.bytes.size()));
  content.replace(write.offset, write.bytes.size(), write.bytes);
}

void LossyDisk::write(Id file, std::uint64_t offset, ByteSpan bytes) {
  Inode& inode = inodes_.at(file);
  inode.pending.push_back({.offset = offset, .bytes = std::string(as_text(bytes))});
  apply(inode.bytes, inode.pending.back());
  touch(file);
}

void LossyDisk::truncate(Id file, std::uint64_t size) {
  Inode& inode = inodes_.at(file);
  inode.pending.push_back({.offset = size, .truncates = true});
  apply(inode.bytes, inode.pending.back());
  touch(file);
}

void LossyDisk::sync_bytes(Id file) {
  Inode& inode = inodes_.at(file);
  for (const Write& write : inode.pending) apply(inode.durable_bytes, write);
  inode.pending.clear();
}

void LossyDisk::give_up_bytes(Id file) { inodes_.at(file).pending.clear(); }

void LossyDisk::give_up_all_bytes() {
  for (auto& [id, inode] : inodes_) inode.pending.clear();
}

bool LossyDisk::share_a_name(const Change& a, const Change& b) {
  return std::ranges::any_of(a, [&](const Effect& effect) {
    return std::ranges::find(b, effect.first, &Effect::first) != b.end();
  });
}

void LossyDisk::make_durable(const Change& change) {
  for (const auto& [slot, id] : change) {
    set_entry(inodes_.at(slot.directory).durable_entries, slot.name, id);
  }
}

void LossyDisk::sync_names(Id directory) {
  std::vector<bool> chosen(pending_.size());
  for (std::size_t i = pending_.size(); i-- > 0;) {
    chosen[i] = chosen[i] || std::ranges::any_of(pending_[i], [&](const Effect& effect) {
                  return effect.first.directory == directory;
                });
    for (std::size_t j = 0; chosen[i] && j < i; ++j) {
      chosen[j] = chosen[j] || share_a_name(pending_[i], pending_[j]);
    }
  }
  std::vector<Change> rest;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (chosen[i]) {
      make_durable(pending_[i]);
    } else {
      rest.push_back(std::move(pending_[i]));
    }
  }
  pending_ = std::move(rest);
}

void LossyDisk::sync_everything() {
  for (const Change& change : pending_) make_durable(change);
  pending_.clear();
  for (const auto& [id, inode] : inodes_) sync_bytes(id);
}

void LossyDisk::lose_some(std::mt19937_64& random) {
  auto name_survives = some_odds(random);
  std::vector<Change> lost;
  for (Change& change : pending_) {
    const bool blocked =
        std::ranges::any_of(lost, [&](const Change& other) { return share_a_name(change, other); });
    if (name_survives(random) && !blocked) {
      make_durable(change);
    } else {
      lost.push_back(std::move(change));
    }
  }
  auto block_survives = some_odds(random);
  for (auto& [id, inode] : inodes_) {
    for (const Write& write : inode.pending) {
      if (write.truncates && block_survives(random)) apply(inode.durable_bytes, write);
      for (std::uint64_t at = 0; at < write.bytes.size();) {
        const std::uint64_t size = kBlock - (write.offset + at) % kBlock;
        const Write block{.offset = write.offset + at, .bytes = write.bytes.substr(at, size)};
        if (block_survives(random)) apply(inode.durable_bytes, block);
        at += size;
      }
    }
  }
}

// What is durable becomes what is seen; what no name leads to is gone.
void LossyDisk::restart() {
  pending_.clear();
  std::set<Id> reached{kRoot};
  std::vector<Id> open{kRoot};
  for (auto& [id, inode] : inodes_) {
    inode.links = id == kRoot ? 1 : 0;
    inode.pending.clear();
    inode.bytes = inode.durable_bytes;
    inode.entries = inode.durable_entries;
  }
  while (!open.empty()) {
    const Id directory = open.back();
    open.pop_back();
    for (const auto& [name, id] : entries(directory)) {
      ++inodes_.at(id).links;
      if (reached.insert(id).second) open.push_back(id);
    }
  }
  std::erase_if(inodes_, [&](const auto& item) { return !reached.contains(item.first); });
}

LossyDisk LossyDisk::after_power_cut(std::optional<std::uint64_t> seed) const {
  LossyDisk disk = *this;
  if (seed) {
    std::mt19937_64 random(*seed);
    disk.lose_some(random);
  }
  disk.restart();
  return disk;
}

void LossyDisk::add_to_snapshot(Id directory, const std::string& path,
                                std::map<std::string, std::string>& out) const {
  for (const auto& [name, id] : entries(directory)) {
    const std::string child = path + "/" + name;
    if (is_directory(id)) {
      out[child + "/"] = "";
      add_to_snapshot(id, child, out);
    } else {
      out[child] = bytes(id);
    }
  }
}

std::map<std::string, std::string> LossyDisk::snapshot() const {
  std::map<std::string, std::string> out;
  add_to_snapshot(kRoot, "", out);
  return out;
}

}  // namespace cairn::testing
