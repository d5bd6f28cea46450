// SPDX-License-Identifier: Apache-2.0
// The model under lossy_file_system.h: what programs see, what is durable, and what a power cut
// leaves.
//
// Bytes are durable by a sync of their inode. A name is durable by a sync of its directory, and of
// nothing else. A rename is one change, even between two directories: all of it is durable, or
// nothing. Changes of the same name become durable in order; other changes in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cairn/base/bytes.h"

namespace cairn::testing {

/// A value: a copy is another disk. Threading: compatible.
class LossyDisk {
 public:
  using Id = std::uint64_t;
  using Entries = std::map<std::string, Id>;
  static constexpr Id kRoot = 1;

  struct Slot {
    Id directory = 0;
    std::string name;
    bool operator==(const Slot&) const = default;
  };
  /// A name and its new target; nullopt removes the name.
  using Effect = std::pair<Slot, std::optional<Id>>;

  LossyDisk();

  bool is_directory(Id id) const { return inodes_.at(id).directory; }
  const std::string& bytes(Id id) const { return inodes_.at(id).bytes; }
  const Entries& entries(Id directory) const { return inodes_.at(directory).entries; }
  std::uint32_t links(Id id) const { return inodes_.at(id).links; }
  std::int64_t modified_ns(Id id) const { return inodes_.at(id).modified_ns; }
  std::optional<Id> find(const Slot& slot) const;
  /// Is `id` the directory `top`, or below it?
  bool is_below(Id id, Id top) const;

  /// Directories that are there now are of an overlay's lower layer from now on: no rename moves
  /// them (EXDEV), everything else works.
  void make_directories_unmovable() { first_movable_ = next_; }
  bool is_movable(Id id) const { return id >= first_movable_ || !is_directory(id); }

  /// A new inode without a name.
  Id make(bool directory);
  void change_names(std::vector<Effect> effects);
  void write(Id file, std::uint64_t offset, ByteSpan bytes);
  void truncate(Id file, std::uint64_t size);

  void sync_bytes(Id file);
  void sync_names(Id directory);
  void sync_everything();
  /// What a failed fsync does: the bytes stay visible, and no later sync makes them durable.
  void give_up_bytes(Id file);
  void give_up_all_bytes();

  /// Only what is durable. With a seed: also any part of the rest that the rules above allow, bytes
  /// in blocks of 512.
  LossyDisk after_power_cut(std::optional<std::uint64_t> seed) const;

  /// Path to content, for the whole tree; a directory's path ends in '/'.
  std::map<std::string, std::string> snapshot() const;

 private:
  struct Write {
    std::uint64_t offset = 0;
    std::string bytes{};
    bool truncates = false;  ///< to `offset`
  };
  struct Inode {
    bool directory = false;
    std::string bytes{};
    std::string durable_bytes{};
    std::vector<Write> pending{};
    Entries entries{};
    Entries durable_entries{};
    std::uint32_t links = 0;
    std::int64_t modified_ns = 0;
  };
  using Change = std::vector<Effect>;

  static void apply(std::string& content, const Write& write);
  static bool share_a_name(const Change& a, const Change& b);
  void touch(Id id) { inodes_.at(id).modified_ns = ++now_ * 1000; }
  void make_durable(const Change& change);
  void lose_some(std::mt19937_64& random);
  void restart();
  void add_to_snapshot(Id directory, const std::string& path,
                       std::map<std::string, std::string>& out) const;

  std::map<Id, Inode> inodes_;
  std::vector<Change> pending_;
  Id next_ = kRoot + 1;
  Id first_movable_ = kRoot;
  std::int64_t now_ = 0;
};

}  // namespace cairn::testing
