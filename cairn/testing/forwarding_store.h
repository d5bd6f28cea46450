// SPDX-License-Identifier: Apache-2.0
// A store in front of another one. Tests override what they want to see or to spoil.
#pragma once

#include <memory>
#include <utility>

#include "cairn/storage/store.h"

namespace cairn::testing {

/// Passes everything on. Threading: that of the store behind it.
class ForwardingStore : public storage::Store {
 public:
  explicit ForwardingStore(std::shared_ptr<storage::Store> behind) : behind_(std::move(behind)) {}

  std::string describe(std::string_view key) const override { return behind_->describe(key); }
  storage::Capabilities capabilities() const override { return behind_->capabilities(); }
  Result<storage::ObjectInfo> stat(std::string_view key) override { return behind_->stat(key); }
  Result<std::unique_ptr<storage::ObjectReader>> open(std::string_view key) override {
    return behind_->open(key);
  }
  Result<std::unique_ptr<storage::ObjectWriter>> create(std::string_view key,
                                                        std::uint64_t size) override {
    return behind_->create(key, size);
  }
  Result<storage::ObjectInfo> put(std::string_view key, ByteSpan bytes,
                                  const storage::Condition& condition) override {
    return behind_->put(key, bytes, condition);
  }
  Result<void> remove(std::string_view key) override { return behind_->remove(key); }
  Result<std::vector<storage::ListEntry>> list(std::string_view directory,
                                               bool recursive) override {
    return behind_->list(directory, recursive);
  }
  Result<void> sync() override { return behind_->sync(); }

 protected:
  const std::shared_ptr<storage::Store> behind_;
};

}  // namespace cairn::testing
