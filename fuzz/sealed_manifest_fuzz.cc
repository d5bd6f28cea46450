// SPDX-License-Identifier: Apache-2.0
// Manifests whose digest is right whatever else is wrong: the digest that the text should have is
// put into it first, so that inputs get behind that check. What parses must have sizes that can be
// multiplied, and survive being written and read again.
#include <cstdint>
#include <cstdlib>

#include "cairn/base/checked.h"
#include "cairn/load/load_plan.h"
#include "cairn/manifest/manifest_json.h"
#include "fuzz/manifest_digest.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
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
  json->set("digest", cairn::fuzz::digest_of(*json));
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
