// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/memory/memory_store.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "cairn/async/mutex.h"
#include "cairn/storage/refusal.h"

namespace cairn::storage {
namespace {

struct Object {
  Buffer bytes;  ///< never changed once it is here, but for those of create_shared()
  std::uint64_t generation = 0;
};

struct Bucket {
  Mutex mutex;
  std::map<std::string, Object, std::less<>> objects CAIRN_GUARDED_BY(mutex);
  std::uint64_t last_generation CAIRN_GUARDED_BY(mutex) = 0;
};

ObjectInfo info_of(const Object& object) {
  return {object.bytes.size(), std::to_string(object.generation)};
}

class MemoryReader final : public ObjectReader {
 public:
  MemoryReader(const Object& object, std::string place)
      : bytes_(object.bytes), generation_(info_of(object).generation), place_(std::move(place)) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read_at(std::uint64_t offset, MutableByteSpan out) override {
    if (!check_range(offset, out.size(), bytes_.size(), place_)) {
      return short_read(offset, out.size(), place_);
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  Result<std::string> generation() override { return generation_; }

 private:
  Buffer bytes_;
  std::string generation_;
  std::string place_;
};

class BucketStore final : public MemoryStore {
 public:
  BucketStore(std::shared_ptr<Bucket> bucket, std::string name, std::string prefix)
      : bucket_(std::move(bucket)), name_(std::move(name)), prefix_(std::move(prefix)) {}

  std::string describe(std::string_view key) const override {
    return fmt::format("memory://{}/{}{}", name_, prefix_, key);
  }
  Capabilities capabilities() const override {
    return {.random_write = true,
            .conditional_write = true,
            .directories = false,
            .shared_write = true,
            .direct_io = false};
  }

  Result<ObjectInfo> stat(std::string_view key) override {
    CAIRN_TRY_ASSIGN(const Object object, find(key));
    return info_of(object);
  }
  Result<std::unique_ptr<ObjectReader>> open(std::string_view key) override {
    CAIRN_TRY_ASSIGN(const Object object, find(key));
    return std::make_unique<MemoryReader>(object, describe(key));
  }
  Result<std::unique_ptr<ObjectWriter>> create(std::string_view key, std::uint64_t size) override;
  Result<std::unique_ptr<ObjectWriter>> create_shared(std::string_view key,
                                                      std::uint64_t size) override;
  Result<ObjectInfo> put(std::string_view key, ByteSpan bytes, const Condition& condition) override;
  Result<void> remove(std::string_view key) override;
  Result<std::vector<ListEntry>> list(std::string_view directory, bool recursive) override;
  Result<void> sync() override { return {}; }
  void change(const MemoryChange& change) override;
  std::unique_ptr<Store> freeze(std::string_view directory) override;

  Result<ObjectInfo> insert(std::string_view key, Buffer bytes, const Condition& condition);

 private:
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }
  Result<Object> find(std::string_view key);
  Error absent(std::string_view key) const {
    return Error(Code::kNotFound, "storage/not-found", "no such object").in(describe(key));
  }

  const std::shared_ptr<Bucket> bucket_;
  const std::string name_;
  const std::string prefix_;  ///< empty, or ends with '/'
};

class MemoryWriter final : public ObjectWriter {
 public:
  MemoryWriter(BucketStore& store, std::string key, Buffer bytes)
      : store_(store), key_(std::move(key)), bytes_(std::move(bytes)) {}

  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    CAIRN_TRY(check_range(offset, bytes.size(), bytes_.size(), place()));
    if (!bytes.empty()) {
      std::memcpy(bytes_.mutable_bytes().data() + offset, bytes.data(), bytes.size());
    }
    written_ += bytes.size();
    return {};
  }

  Result<void> finish() override {
    if (finished_ || written_ != bytes_.size()) {
      return incomplete(written_, bytes_.size(), place());
    }
    finished_ = true;
    CAIRN_TRY(store_.insert(key_, std::move(bytes_), {}));
    return {};
  }

 private:
  std::string place() const { return store_.describe(key_); }

  BucketStore& store_;
  const std::string key_;
  Buffer bytes_;
  std::atomic<std::uint64_t> written_ = 0;
  bool finished_ = false;
};

/// Its ranges of an object that is there already.
class SharedWriter final : public ObjectWriter {
 public:
  SharedWriter(Buffer bytes, std::string place)
      : bytes_(std::move(bytes)), place_(std::move(place)) {}

  Result<void> write_at(std::uint64_t offset, ByteSpan bytes) override {
    CAIRN_TRY(check_range(offset, bytes.size(), bytes_.size(), place_));
    if (!bytes.empty())
      std::memcpy(bytes_.mutable_bytes().data() + offset, bytes.data(), bytes.size());
    return {};
  }
  Result<void> finish() override { return {}; }

 private:
  Buffer bytes_;
  const std::string place_;
};

Result<Object> BucketStore::find(std::string_view key) {
  CAIRN_TRY(check_key(key, describe(key)));
  MutexLock lock(bucket_->mutex);
  const auto found = bucket_->objects.find(full(key));
  if (found == bucket_->objects.end()) return absent(key);
  return found->second;
}

Result<std::unique_ptr<ObjectWriter>> BucketStore::create(std::string_view key,
                                                          std::uint64_t size) {
  CAIRN_TRY(check_key(key, describe(key)));
  CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(static_cast<std::size_t>(size)));
  return std::make_unique<MemoryWriter>(*this, std::string(key), std::move(bytes));
}

Result<std::unique_ptr<ObjectWriter>> BucketStore::create_shared(std::string_view key,
                                                                 std::uint64_t size) {
  CAIRN_TRY(check_key(key, describe(key)));
  CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::zeros(static_cast<std::size_t>(size)));
  MutexLock lock(bucket_->mutex);
  Object& object = bucket_->objects[full(key)];
  if (object.generation == 0 || object.bytes.size() != size)
    object = {std::move(bytes), ++bucket_->last_generation};
  return std::make_unique<SharedWriter>(object.bytes, describe(key));
}

Result<ObjectInfo> BucketStore::put(std::string_view key, ByteSpan bytes,
                                    const Condition& condition) {
  CAIRN_TRY(check_key(key, describe(key)));
  CAIRN_TRY_ASSIGN(Buffer copy, Buffer::allocate(bytes.size()));
  if (!bytes.empty()) std::memcpy(copy.mutable_bytes().data(), bytes.data(), bytes.size());
  return insert(key, std::move(copy), condition);
}

Result<ObjectInfo> BucketStore::insert(std::string_view key, Buffer bytes,
                                       const Condition& condition) {
  MutexLock lock(bucket_->mutex);
  const auto found = bucket_->objects.find(full(key));
  const bool present = found != bucket_->objects.end();
  if (condition.absent && present) return condition_failed(describe(key));
  if (condition.generation &&
      (!present || info_of(found->second).generation != *condition.generation)) {
    return condition_failed(describe(key));
  }
  const Object object{std::move(bytes), ++bucket_->last_generation};
  bucket_->objects.insert_or_assign(full(key), object);
  return info_of(object);
}

Result<void> BucketStore::remove(std::string_view key) {
  CAIRN_TRY(check_key(key, describe(key)));
  MutexLock lock(bucket_->mutex);
  if (bucket_->objects.erase(full(key)) == 0) return absent(key);
  return {};
}

Result<std::vector<ListEntry>> BucketStore::list(std::string_view directory, bool recursive) {
  if (!directory.empty()) CAIRN_TRY(check_key(directory, describe(directory)));
  const std::string below = directory.empty() ? prefix_ : full(directory) + "/";
  std::vector<ListEntry> entries;
  {
    MutexLock lock(bucket_->mutex);
    for (auto at = bucket_->objects.lower_bound(below);
         at != bucket_->objects.end() && at->first.starts_with(below); ++at) {
      const auto& [name, object] = *at;
      const std::size_t slash = recursive ? std::string::npos : name.find('/', below.size());
      const bool directory_entry = slash != std::string::npos;
      ListEntry entry{.key = name.substr(0, slash).substr(prefix_.size()),
                      .directory = directory_entry,
                      .size = directory_entry ? 0 : object.bytes.size()};
      const bool repeated = !entries.empty() && entries.back().directory && directory_entry &&
                            entries.back().key == entry.key;
      if (!repeated) entries.push_back(std::move(entry));
    }
  }
  std::ranges::sort(entries, {},
                    [](const ListEntry& entry) { return std::tie(entry.key, entry.directory); });
  return entries;
}

/// The keys that a name stands for, with what follows the name in each.
std::vector<std::pair<std::string, std::string>> keys_of(const Bucket& bucket,
                                                         const std::string& name)
    CAIRN_REQUIRES(bucket.mutex) {
  std::vector<std::pair<std::string, std::string>> keys;
  if (bucket.objects.contains(name)) keys.emplace_back(name, "");
  const std::string below = name + "/";
  for (auto at = bucket.objects.lower_bound(below);
       at != bucket.objects.end() && at->first.starts_with(below); ++at) {
    keys.emplace_back(at->first, at->first.substr(name.size()));
  }
  return keys;
}

void BucketStore::change(const MemoryChange& change) {
  Bucket& bucket = *bucket_;
  MutexLock lock(bucket.mutex);
  for (const std::string& name : change.removed) {
    for (const auto& [key, rest] : keys_of(bucket, full(name))) bucket.objects.erase(key);
  }
  for (const auto& [from, to] : change.moved) {
    for (const auto& [key, rest] : keys_of(bucket, full(from))) {
      auto node = bucket.objects.extract(key);
      node.key() = full(to) + rest;
      node.mapped().generation = ++bucket.last_generation;
      bucket.objects.insert(std::move(node));
    }
  }
  for (const auto& [name, bytes] : change.put)
    bucket.objects.insert_or_assign(full(name), Object{bytes, ++bucket.last_generation});
}

std::unique_ptr<Store> BucketStore::freeze(std::string_view directory) {
  const auto copy = std::make_shared<Bucket>();
  const std::string below = full(directory);
  {
    MutexLock lock(bucket_->mutex);
    MutexLock mine(copy->mutex);
    for (const auto& [key, rest] : keys_of(*bucket_, below))
      copy->objects.insert_or_assign(key, bucket_->objects.find(key)->second);
  }
  return std::make_unique<BucketStore>(copy, name_, below + "/");
}

}  // namespace

std::unique_ptr<Store> make_memory_store() {
  return std::make_unique<BucketStore>(std::make_shared<Bucket>(), "unnamed", "");
}

std::unique_ptr<MemoryStore> open_memory_store(const std::string& name,
                                               const std::string& directory) {
  struct Registry {
    Mutex mutex;
    std::map<std::string, std::shared_ptr<Bucket>> buckets CAIRN_GUARDED_BY(mutex);
  };
  static Registry& registry = *new Registry;  // outlives every static object
  MutexLock lock(registry.mutex);
  std::shared_ptr<Bucket>& bucket = registry.buckets[name];
  if (bucket == nullptr) bucket = std::make_shared<Bucket>();
  const std::size_t last = directory.find_last_not_of('/');
  const std::string trimmed = last == std::string::npos ? "" : directory.substr(0, last + 1) + "/";
  return std::make_unique<BucketStore>(bucket, name, trimmed);
}

}  // namespace cairn::storage
