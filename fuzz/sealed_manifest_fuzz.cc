// SPDX-License-Identifier: Apache-2.0
// Manifests whose digest is right whatever else is wrong: the digest that the text should have is
// put into it first, so that inputs get behind that check. What parses must have sizes that can be
// multiplied, and survive being written and read again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/base/base64.h"
#include "cairn/base/checked.h"
#include "cairn/base/json.h"
#include "cairn/base/sha256.h"
#include "cairn/load/load_plan.h"
#include "cairn/manifest/manifest_json.h"

namespace {

using cairn::Index;
using cairn::Json;
using cairn::Shape;

void require(bool condition) {
  if (!condition) std::abort();
}

template <typename T>
std::vector<T> column(const Json& json, std::string_view name) {
  const Json* member = json.find(name);
  const bool is_text = member != nullptr && member->text() != nullptr;
  const auto bytes = cairn::decode_base64(is_text ? *member->text() : std::string());
  std::vector<T> values(bytes ? bytes->size() / sizeof(T) : 0);
  if (!values.empty()) std::memcpy(values.data(), bytes->data(), values.size() * sizeof(T));
  return values;
}

const Json::Array& list(const Json* json, std::string_view name) {
  static const Json::Array kNone;
  const Json* member = json != nullptr ? json->find(name) : nullptr;
  return member != nullptr && member->array() != nullptr ? *member->array() : kNone;
}

Shape shape_of(const Json::Array& column, std::size_t i) {
  Shape shape;
  if (i >= column.size() || column[i].array() == nullptr) return shape;
  for (const Json& size : *column[i].array())
    shape.push_back(std::max<Index>(size.integer().value_or(0), 0));
  return shape;
}

/// Modulo 2^64, as a parser that checks nothing would count them.
std::uint64_t chunk_count(const Shape& shape, const Shape& chunk) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Index step = std::max<Index>(d < chunk.size() ? chunk[d] : shape[d], 1);
    count *= static_cast<std::uint64_t>(cairn::ceil_div(shape[d], step));
  }
  return count;
}

/// docs/format/manifest.md
std::string digest_of(const Json& json) {
  cairn::Sha256 sha;
  if (const Json* structure = json.find("structure"))
    sha.update(cairn::as_bytes(cairn::dump_json(*structure)));
  const Json* arrays = json.find("arrays");
  const Json::Array& dtypes = list(arrays, "dtype");
  const auto lengths = column<std::uint64_t>(json, "lengths");
  const auto crcs = column<std::uint32_t>(json, "crcs");
  const Json* member = json.find("block_bytes");
  const std::uint64_t block =
      std::max<std::uint64_t>(member != nullptr ? member->unsigned_integer().value_or(1) : 1, 1);
  std::size_t chunk_at = 0;
  std::size_t block_at = 0;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    const Shape shape = shape_of(list(arrays, "shape"), i);
    const std::string name = dtypes[i].text() != nullptr ? *dtypes[i].text() : "";
    sha.update(cairn::as_bytes("\n" + name + cairn::to_string(shape)));
    const std::uint64_t chunks = std::min<std::uint64_t>(
        chunk_count(shape, shape_of(list(arrays, "chunk"), i)), lengths.size() - chunk_at);
    const std::span mine = std::span(lengths).subspan(chunk_at, chunks);
    chunk_at += chunks;
    std::uint64_t blocks = 0;
    for (const std::uint64_t length : mine)
      blocks = std::min<std::uint64_t>(blocks + length / block + (length % block != 0 ? 1 : 0),
                                       crcs.size() - block_at);
    sha.update(std::as_bytes(mine));
    sha.update(std::as_bytes(std::span(crcs).subspan(block_at, blocks)));
    block_at += blocks;
  }
  return sha.hex();
}

void check_sizes(const cairn::format::StoredArray& stored) {
  const auto whole = cairn::checked_mul(stored.chunk_count(), stored.chunk_memory_bytes());
  require(whole && *whole <= cairn::format::kMaxArrayBytes);
  require(stored.chunk_bytes() <= stored.chunk_memory_bytes());
  require(cairn::Box::whole(stored.shape).elements() <= *whole);
  require(stored.offset <= 2 * cairn::format::kMaxArrayBytes);
}

void check_plan(const cairn::ManifestArray& array) {
  constexpr std::uint64_t kMost = 1 << 16;
  if (array.stored.chunk_count() > kMost || array.stored.chunk_bytes() > (kMost << 10)) return;
  const cairn::LoadPlan plan =
      cairn::plan_load({{&array, cairn::Box::whole(array.stored.shape)}}, true);
  for (const cairn::ReadJob& job : plan.jobs) require(job.begin <= job.end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = cairn::parse_json({reinterpret_cast<const char*>(data), size});
  if (!json || json->object() == nullptr) return 0;
  json->set("digest", digest_of(*json));
  const auto manifest = cairn::parse_manifest(cairn::dump_json(*json));
  if (!manifest) return 0;
  for (const cairn::ManifestArray& array : manifest->arrays) {
    check_sizes(array.stored);
    check_plan(array);
  }
  const auto text = cairn::dump_manifest(*manifest);
  require(text.has_value());
  const auto again = cairn::parse_manifest(*text);
  require(again.has_value());
  require(again->digest == manifest->digest);
  return 0;
}
