// SPDX-License-Identifier: Apache-2.0
// `Buffer`: bytes with a shared owner. Arrays and everything read from a store live in one.
#pragma once

#include <memory>
#include <string>

#include "cairn/base/bytes.h"
#include "cairn/base/result.h"

namespace cairn {

/// Bytes and the owner that keeps them alive. Copies share the bytes. Threading: compatible;
/// callers synchronise access to the bytes themselves.
class Buffer {
 public:
  /// Alignment of allocate() from this size on, enough for direct I/O; smaller buffers are aligned
  /// to a cache line (64).
  static constexpr std::size_t kAlignment = 4096;

  Buffer() = default;

  /// Uninitialised bytes. `resource_exhausted` (base/out-of-memory) instead of an exception. Every
  /// allocation of data size in Cairn goes through here.
  static Result<Buffer> allocate(std::size_t size);
  static Result<Buffer> zeros(std::size_t size);
  /// Takes over the bytes of `text`.
  static Buffer own(std::string text);
  /// Bytes that `owner` keeps alive; if it is null, the caller promises that they outlive every
  /// copy. Mutable.
  static Buffer borrow(MutableByteSpan bytes, std::shared_ptr<const void> owner);
  /// The same, with the promise that nobody will ever change the bytes: a save does not copy lent
  /// memory.
  static Buffer lend(ByteSpan bytes, std::shared_ptr<const void> owner);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Nobody will change these bytes.
  bool immutable() const { return immutable_; }
  const std::byte* data() const { return data_; }
  ByteSpan bytes() const { return {data_, size_}; }
  /// REQUIRES: !immutable().
  MutableByteSpan mutable_bytes() { return {data_, size_}; }

  /// A part of the same bytes, same owner. REQUIRES: offset + size <= this->size().
  Buffer slice(std::size_t offset, std::size_t size) const;

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool immutable_ = false;
  std::shared_ptr<const void> owner_;
};

}  // namespace cairn
