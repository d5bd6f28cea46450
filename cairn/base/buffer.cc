// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace cairn {
namespace {

constexpr std::size_t kSmallAlignment = 64;
// More than any address space holds: refused without asking the allocator.
constexpr std::size_t kLargest = std::size_t{1} << 48;

Error out_of_memory(std::size_t size) {
  return {Code::kResourceExhausted, "base/out-of-memory",
          "no memory for " + std::to_string(size) + " bytes; free some or lower the byte budget"};
}

}  // namespace

Result<Buffer> Buffer::allocate(std::size_t size) {
  if (size > kLargest) return out_of_memory(size);
  void* memory = nullptr;
  const std::size_t alignment = size >= kAlignment ? kAlignment : kSmallAlignment;
  if (posix_memalign(&memory, alignment, std::max<std::size_t>(size, 1)) != 0) {
    return out_of_memory(size);
  }
  try {
    // Frees `memory` itself when it has no memory for its own state.
    return borrow({static_cast<std::byte*>(memory), size}, {memory, std::free});
  } catch (const std::bad_alloc&) {
    return out_of_memory(size);
  }
}

Result<Buffer> Buffer::zeros(std::size_t size) {
  CAIRN_TRY_ASSIGN(Buffer buffer, allocate(size));
  std::memset(buffer.data_, 0, size);
  return buffer;
}

Buffer Buffer::own(std::string text) {
  auto owner = std::make_shared<std::string>(std::move(text));
  const MutableByteSpan bytes(reinterpret_cast<std::byte*>(owner->data()), owner->size());
  return borrow(bytes, std::move(owner));
}

Buffer Buffer::borrow(MutableByteSpan bytes, std::shared_ptr<const void> owner) {
  Buffer buffer;
  buffer.data_ = bytes.data();
  buffer.size_ = bytes.size();
  buffer.owner_ = std::move(owner);
  return buffer;
}

Buffer Buffer::lend(ByteSpan bytes, std::shared_ptr<const void> owner) {
  // The constness comes back as `immutable_`.
  Buffer buffer = borrow({const_cast<std::byte*>(bytes.data()), bytes.size()}, std::move(owner));
  buffer.immutable_ = true;
  return buffer;
}

Buffer Buffer::slice(std::size_t offset, std::size_t size) const {
  Buffer part = *this;
  part.data_ += offset;
  part.size_ = size;
  return part;
}

}  // namespace cairn
