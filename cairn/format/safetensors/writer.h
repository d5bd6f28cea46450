// SPDX-License-Identifier: Apache-2.0
// Writes one safetensors file tensor by tensor, in any order and in pieces: it holds the header and
// nothing else.
#pragma once

#include <memory>

#include "cairn/format/safetensors/header.h"
#include "cairn/storage/store.h"

namespace cairn::format::safetensors {

/// Threading: write() is safe for disjoint ranges; call finish() once, after all writes. Without
/// finish() no file appears. The store must outlive it.
class Writer {
 public:
  /// Tensors need name, dtype and shape. Errors as make_header() and Store::create().
  static Result<Writer> create(storage::Store& store, std::string_view key,
                               std::vector<Tensor> tensors, const Metadata& metadata);

  /// One of several writers, in any processes, that fill one file together with the same tensors
  /// and metadata. One of them writes the header. `unimplemented` (storage/no-shared-write).
  static Result<Writer> join(storage::Store& store, std::string_view key,
                             std::vector<Tensor> tensors, const Metadata& metadata,
                             bool writes_header);

  /// What the file says of itself: the tensors with their offsets, in file order.
  const Header& header() const { return header_; }
  const std::vector<Tensor>& tensors() const { return header_.tensors; }
  /// Offset in the file of the first data byte.
  std::uint64_t data_start() const { return header_.data_start; }

  /// Stored bytes (packed where the type packs) of one of tensors(), from `offset` within it; each
  /// byte once. `invalid_argument` (safetensors/out-of-range).
  Result<void> write(const Tensor& tensor, std::uint64_t offset, ByteSpan bytes);
  /// Replaces metadata texts under the same keys with values known only after the data was written,
  /// such as checksums. `invalid_argument` (safetensors/metadata-length) unless the header keeps
  /// its length; `failed_precondition` (safetensors/header-written) if the store accepts bytes only
  /// in order.
  Result<void> set_metadata(const Metadata& metadata);
  /// Length field and padded JSON, as they are or will be in the file.
  const std::string& header_text() const { return text_; }
  /// Makes the file visible; when several writers fill the file, makes durable what this one wrote.
  /// `failed_precondition` (storage/incomplete) if bytes are missing.
  Result<void> finish();

 private:
  Writer(Header header, std::string text, bool header_last,
         std::unique_ptr<storage::ObjectWriter> out);

  Header header_;
  std::string text_;
  bool header_last_;
  std::unique_ptr<storage::ObjectWriter> out_;
};

}  // namespace cairn::format::safetensors
