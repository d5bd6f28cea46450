// SPDX-License-Identifier: Apache-2.0
// The JSON files of a checkpoint: manifest, record, index, attempt and outcome. What parses must
// survive being written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cairn/commit/posix/attempt_files.h"
#include "cairn/commit/rank_report.h"
#include "cairn/manifest/eformer_index.h"
#include "cairn/manifest/manifest_json.h"
#include "cairn/manifest/record.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto manifest = cairn::parse_manifest(text)) {
    const auto again = cairn::parse_manifest(*cairn::dump_manifest(*manifest));
    require(again.has_value());
    require(again->digest == manifest->digest);
  }
  if (const auto record = cairn::parse_record(text)) {
    const auto again = cairn::parse_record(*cairn::dump_record(*record));
    require(again.has_value());
    require(again->generation == record->generation);
  }
  if (cairn::parse_eformer_index(text)) {
    const auto merged =
        cairn::merge_eformer_index(text, {{"p", cairn::Json(cairn::Json::Array{})}});
    require(merged.has_value() && merged->has_value());
    require(cairn::parse_eformer_index(**merged).has_value());
  }
  if (const auto attempt = cairn::parse_attempt_file(text)) {
    require(cairn::parse_attempt_file(*cairn::dump_attempt_file(*attempt)).has_value());
  }
  if (const auto report = cairn::parse_rank_report(text)) {
    const auto again = cairn::parse_rank_report(*cairn::dump_rank_report(*report));
    require(again.has_value());
    require(again->sums == report->sums);
  }
  if (const auto outcome = cairn::parse_outcome(text)) {
    require(cairn::parse_outcome(*cairn::dump_outcome(*outcome)).has_value());
  }
  return 0;
}
