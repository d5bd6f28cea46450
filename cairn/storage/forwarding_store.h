// SPDX-License-Identifier: Apache-2.0
// A store in front of another one: a base for stores that change some calls.
#pragma once

#include <memory>
#include <utility>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// Passes everything on. Threading: that of the store behind it.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::shared_ptr<Store> behind) : behind_(std::move(behind)) {}

  std::string describe(std::string_view key) const override { return behind_->describe(key); }
  Capabilities capabilities() const override { return behind_->capabilities(); }
  Result<ObjectInfo> stat(std::string_view key) override { return behind_->stat(key); }
  Result<std::unique_ptr<ObjectReader>> open(std::string_view key) override {
    return behind_->open(key);
  }
  Result<std::unique_ptr<ObjectWriter>> create(std::string_view key, std::uint64_t size) override {
    return behind_->create(key, size);
  }
  Result<ObjectInfo> put(std::string_view key, ByteSpan bytes,
                         const Condition& condition) override {
    return behind_->put(key, bytes, condition);
  }
  Result<void> remove(std::string_view key) override { return behind_->remove(key); }
  Result<std::vector<ListEntry>> list(std::string_view directory, bool recursive) override {
    return behind_->list(directory, recursive);
  }
  Result<void> sync() override { return behind_->sync(); }

 protected:
  const std::shared_ptr<Store> behind_;
};

}  // namespace cairn::storage
