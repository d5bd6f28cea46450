// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/writer.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/format/safetensors/quoted.h"

namespace cairn::format::safetensors {

Writer::Writer(Header header, std::string text, bool header_last,
               std::unique_ptr<storage::ObjectWriter> out)
    : header_(std::move(header)),
      text_(std::move(text)),
      header_last_(header_last),
      out_(std::move(out)) {}

namespace {

Header header_of(std::vector<Tensor> tensors, const Metadata& metadata, const std::string& text) {
  Header header;
  header.metadata = metadata;
  header.data_start = text.size();
  header.data_bytes = tensors.empty() ? 0 : tensors.back().end;
  header.tensors = std::move(tensors);
  return header;
}

}  // namespace

Result<Writer> Writer::join(storage::Store& store, std::string_view key,
                            std::vector<Tensor> tensors, const Metadata& metadata,
                            bool writes_header) {
  CAIRN_TRY_ASSIGN(std::string text, make_header(tensors, metadata));
  Header header = header_of(std::move(tensors), metadata, text);
  CAIRN_TRY_ASSIGN(auto out, store.create_shared(key, header.data_start + header.data_bytes));
  return Writer(std::move(header), std::move(text), writes_header, std::move(out));
}

Result<Writer> Writer::create(storage::Store& store, std::string_view key,
                              std::vector<Tensor> tensors, const Metadata& metadata) {
  CAIRN_TRY_ASSIGN(std::string text, make_header(tensors, metadata));
  Header header = header_of(std::move(tensors), metadata, text);
  CAIRN_TRY_ASSIGN(auto out, store.create(key, header.data_start + header.data_bytes));
  const bool header_last = store.capabilities().random_write;
  if (!header_last) CAIRN_TRY(out->write_at(0, as_bytes(text)));
  return Writer(std::move(header), std::move(text), header_last, std::move(out));
}

Result<void> Writer::write(const Tensor& tensor, std::uint64_t offset, ByteSpan bytes) {
  const std::uint64_t size = tensor.end - tensor.begin;
  if (tensor.end < tensor.begin || tensor.end > header_.data_bytes || offset > size ||
      bytes.size() > size - offset) {
    return Error(Code::kInvalidArgument, "safetensors/out-of-range",
                 fmt::format("{} bytes at {} do not lie in tensor {} of {} bytes", bytes.size(),
                             offset, quoted(tensor.name), size));
  }
  if (bytes.empty()) return {};
  return out_->write_at(header_.data_start + tensor.begin + offset, bytes);
}

Result<void> Writer::set_metadata(const Metadata& metadata) {
  if (!header_last_) {
    return Error(Code::kFailedPrecondition, "safetensors/header-written",
                 "the header is already in the store");
  }
  CAIRN_TRY_ASSIGN(std::string text, make_header(header_.tensors, metadata));
  if (text.size() != text_.size()) {
    return Error(
        Code::kInvalidArgument, "safetensors/metadata-length",
        fmt::format("the header would have {} bytes instead of {}", text.size(), text_.size()));
  }
  text_ = std::move(text);
  header_.metadata = metadata;
  return {};
}

Result<void> Writer::finish() {
  if (header_last_) CAIRN_TRY(out_->write_at(0, as_bytes(text_)));
  return out_->finish();
}

}  // namespace cairn::format::safetensors
