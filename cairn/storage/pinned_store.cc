// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/pinned_store.h"

#include <map>
#include <optional>
#include <utility>

#include "cairn/async/mutex.h"
#include "cairn/storage/forwarding_store.h"

namespace cairn::storage {
namespace {

/// An object in the state in which it was first seen.
class PinnedReader final : public ObjectReader {
 public:
  PinnedReader(std::shared_ptr<ObjectReader> object, std::string pinned, std::string place)
      : object_(std::move(object)), pinned_(std::move(pinned)), place_(std::move(place)) {}

  std::uint64_t size() const override { return object_->size(); }
  Result<void> read_at(std::uint64_t offset, MutableByteSpan out) override {
    auto done = object_->read_at(offset, out);
    // A file that became shorter is a changed one.
    CAIRN_TRY(check());
    return done;
  }
  Result<std::string> generation() override { return object_->generation(); }

  Result<void> check() {
    CAIRN_TRY_ASSIGN(const std::string now, object_->generation());
    if (now == pinned_) return {};
    return Error(Code::kUnavailable, "storage/replaced",
                 "it was written again while it was read; read it again")
        .in(place_);
  }

 private:
  const std::shared_ptr<ObjectReader> object_;
  const std::string pinned_;
  const std::string place_;
};

class PinnedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<std::unique_ptr<ObjectReader>> open(std::string_view key) override {
    MutexLock lock(mutex_);
    auto seen = seen_.find(key);
    std::shared_ptr<ObjectReader> object = seen == seen_.end() ? nullptr : seen->second.object;
    if (object == nullptr) {
      CAIRN_TRY_ASSIGN(object, behind_->open(key));
    }
    if (seen == seen_.end()) {
      CAIRN_TRY_ASSIGN(std::string generation, object->generation());
      seen = seen_.emplace(key, Seen{std::move(generation), nullptr}).first;
      if (held_ < kMostHeldObjects) {
        seen->second.object = object;
        ++held_;
      }
    }
    auto reader =
        std::make_unique<PinnedReader>(std::move(object), seen->second.generation, describe(key));
    CAIRN_TRY(reader->check());
    return reader;
  }

 private:
  struct Seen {
    std::string generation;
    std::shared_ptr<ObjectReader> object;  ///< null: not held
  };

  Mutex mutex_;
  std::map<std::string, Seen, std::less<>> seen_ CAIRN_GUARDED_BY(mutex_);
  std::size_t held_ CAIRN_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::shared_ptr<Store> pin_objects(std::shared_ptr<Store> behind) {
  return std::make_shared<PinnedStore>(std::move(behind));
}

}  // namespace cairn::storage
