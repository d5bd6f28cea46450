// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/safetensors/reader.h"

#include <algorithm>
#include <compare>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "cairn/format/safetensors/header_parser.h"
#include "cairn/format/safetensors/quoted.h"

namespace cairn::format::safetensors {
namespace {

// Holds most headers whole, so that they cost one request.
constexpr std::uint64_t kFirstRead = 64 * kKiB;

// The first bytes of the file up to the end of its header at least.
Result<Buffer> read_front(storage::ObjectReader& file) {
  const std::uint64_t size = file.size();
  CAIRN_TRY_ASSIGN(Buffer front, Buffer::allocate(std::min(size, kFirstRead)));
  CAIRN_TRY(file.read_at(0, front.mutable_bytes()));
  CAIRN_TRY_ASSIGN(const std::uint64_t length, parse_header_length(front.bytes(), size));
  if (kLengthBytes + length <= front.size()) return front.slice(0, kLengthBytes + length);
  CAIRN_TRY_ASSIGN(Buffer whole, Buffer::allocate(kLengthBytes + length));
  CAIRN_TRY(file.read_at(0, whole.mutable_bytes()));
  return whole;
}

Result<Header> read_header_of(storage::ObjectReader& file) {
  CAIRN_TRY_ASSIGN(const Buffer front, read_front(file));
  return parse_header(as_text(front.bytes().subspan(kLengthBytes)), file.size());
}

// What it means that the store has no object for a part that the index names.
Error explain_absent(storage::Store& store, const std::string& key) {
  const auto below = store.list(key, false);
  const bool directory = below && !below->empty();
  return {Code::kCorrupt,
          directory ? "safetensors-index/part-is-directory" : "safetensors-index/missing-part",
          fmt::format("{} is a part in the index and {} in the store; the set is incomplete",
                      store.describe(key), directory ? "a directory" : "nothing")};
}

Result<Header> read_part(storage::Store& store, const std::string& key) {
  auto file = store.open(key);
  if (!file && file.error().code() == Code::kNotFound) return explain_absent(store, key);
  if (!file) return std::move(file).error();
  return read_header_of(**file).in([&] { return store.describe(key); });
}

struct Wanted {
  std::string_view part;
  std::string_view tensor;
  auto operator<=>(const Wanted&) const = default;
};

Result<void> check_tensors(const Header& header, std::span<const Wanted> wanted) {
  std::vector<std::string_view> held;
  held.reserve(header.tensors.size());
  for (const Tensor& tensor : header.tensors) held.push_back(tensor.name);
  std::ranges::sort(held);
  for (const auto& [part, tensor] : wanted) {
    if (std::ranges::binary_search(held, tensor)) continue;
    return Error(Code::kCorrupt, "safetensors-index/tensor-not-in-part",
                 fmt::format("the index says that tensor {} is in part {}, which does not hold it",
                             quoted(tensor), quoted(part)));
  }
  return {};
}

}  // namespace

Result<Header> read_header(storage::Store& store, std::string_view key) {
  CAIRN_TRY_ASSIGN(const auto file, store.open(key));
  return read_header_of(*file).in([&] { return store.describe(key); });
}

Result<Index> read_index(storage::Store& store, std::string_view key) {
  CAIRN_TRY_ASSIGN(const Buffer text, storage::read_all(store, key, kMaxIndexBytes));
  return parse_index(as_text(text.bytes())).in([&] { return store.describe(key); });
}

Result<std::vector<Part>> read_parts(storage::Store& store, std::string_view directory,
                                     const Index& index) {
  std::vector<Wanted> wanted;
  wanted.reserve(index.weight_map.size());
  for (const auto& [tensor, part] : index.weight_map) wanted.push_back({part, tensor});
  std::ranges::sort(wanted);

  std::vector<Part> parts;
  for (auto first = wanted.begin(); first != wanted.end();) {
    const auto last = std::ranges::find_if(
        first, wanted.end(), [&](std::string_view part) { return part != first->part; },
        &Wanted::part);
    std::string key =
        directory.empty() ? std::string(first->part) : fmt::format("{}/{}", directory, first->part);
    CAIRN_TRY_ASSIGN(Header header, read_part(store, key));
    CAIRN_TRY(check_tensors(header, {first, last}));
    parts.push_back({std::move(key), std::move(header)});
    first = last;
  }
  return parts;
}

}  // namespace cairn::format::safetensors
