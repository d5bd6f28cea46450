// SPDX-License-Identifier: Apache-2.0
// A store that counts reads.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "cairn/storage/forwarding_store.h"

namespace cairn::testing {

/// Counts the bytes that are read and the reads. Threading: safe.
class CountingStore final : public storage::ForwardingStore {
 public:
  using storage::ForwardingStore::ForwardingStore;
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t requests() const { return requests_; }

  Result<std::unique_ptr<storage::ObjectReader>> open(std::string_view key) override {
    CAIRN_TRY_ASSIGN(auto reader, behind_->open(key));
    return std::unique_ptr<storage::ObjectReader>(
        std::make_unique<Reader>(std::move(reader), *this));
  }

 private:
  class Reader final : public storage::ObjectReader {
   public:
    Reader(std::unique_ptr<storage::ObjectReader> inner, CountingStore& counter)
        : inner_(std::move(inner)), counter_(counter) {}
    std::uint64_t size() const override { return inner_->size(); }
    Result<void> read_at(std::uint64_t offset, MutableByteSpan out) override {
      counter_.bytes_ += out.size();
      ++counter_.requests_;
      return inner_->read_at(offset, out);
    }
    Result<std::string> generation() override { return inner_->generation(); }

   private:
    std::unique_ptr<storage::ObjectReader> inner_;
    CountingStore& counter_;
  };

  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<std::uint64_t> requests_ = 0;
};

}  // namespace cairn::testing
