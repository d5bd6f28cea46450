// SPDX-License-Identifier: Apache-2.0
// Writes one safetensors file tensor by tensor, in any order and in pieces: it holds the header and
// nothing else.
#pragma once

#include <memory>

#include "cairn/format/safetensors/header.h"
#include "cairn/storage/store.h"

namespace cairn::format::safetensors {

/// Threading: write() is safe for disjoint ranges. Dropped unfinished: no file appears.
class Writer {
 public:
  /// Tensors need name, dtype and shape. Errors as make_header() and Store::create().
  static Result<Writer> create(storage::Store& store, std::string_view key, std::vector<Tensor> tensors,
                               const std::vector<std::pair<std::string, std::string>>& metadata);

  /// The tensors with their offsets, in file order.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// Offset in the file of the first data byte.
  std::uint64_t data_start() const { return data_start_; }
  /// Stored bytes (packed where the type packs) of one tensor, from `offset` within it.
  Result<void> write(const Tensor& tensor, std::uint64_t offset, ByteSpan bytes);
  Result<void> finish();

 private:
  std::vector<Tensor> tensors_;
  std::uint64_t data_start_ = 0;
  std::unique_ptr<storage::ObjectWriter> out_;
};

}  // namespace cairn::format::safetensors
