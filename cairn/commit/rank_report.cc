// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/rank_report.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "cairn/base/base64.h"
#include "cairn/base/json.h"
#include "cairn/coord/told_error.h"

namespace cairn {

static_assert(std::endian::native == std::endian::little,
              "columns are copied as they lie in memory");

namespace {

constexpr JsonLimits kReportLimits = {.bytes = kMaxRankReportBytes};

Error bad_report() {
  return Error(Code::kCorrupt, "ranks/bad-report", "the report of a rank is damaged");
}

template <typename Range, typename Member>
Json column(const std::vector<Range>& ranges, Member Range::* member) {
  std::vector<Member> values;
  values.reserve(ranges.size());
  for (const Range& range : ranges) values.push_back(range.*member);
  return encode_base64(std::as_bytes(std::span(values)));
}

template <typename Range, typename Member>
Result<void> fill(const Json& json, std::string_view name, Member Range::* member,
                  std::vector<Range>& ranges) {
  const Json* column = json.find(name);
  if (column == nullptr || column->text() == nullptr) return bad_report();
  const auto bytes = decode_base64(*column->text());
  if (!bytes || bytes->size() != ranges.size() * sizeof(Member)) return bad_report();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::memcpy(&(ranges[i].*member), bytes->data() + i * sizeof(Member), sizeof(Member));
  }
  return {};
}

Json hashes_to_json(const std::vector<HashedRange>& hashes) {
  return Json::Object{{"count", static_cast<std::uint64_t>(hashes.size())},
                      {"array", column(hashes, &HashedRange::array)},
                      {"begin", column(hashes, &HashedRange::begin)},
                      {"end", column(hashes, &HashedRange::end)},
                      {"sha256", column(hashes, &HashedRange::sha256)}};
}

Json sums_to_json(const WrittenSums& sums) {
  const std::vector<SummedRange>& ranges = sums.ranges;
  return Json::Object{{"hashes", hashes_to_json(sums.hashes)},
                      {"count", static_cast<std::uint64_t>(ranges.size())},
                      {"array", column(ranges, &SummedRange::array)},
                      {"crc", column(ranges, &SummedRange::crc)},
                      {"chunk", column(ranges, &SummedRange::chunk)},
                      {"begin", column(ranges, &SummedRange::begin)},
                      {"end", column(ranges, &SummedRange::end)}};
}

bool is_range(const SummedRange& range) {
  return range.begin < range.end && range.begin / kBlockBytes == (range.end - 1) / kBlockBytes;
}

/// So many as are counted, if the column of their arrays is long enough for it: four bytes each, in
/// base64. Nothing is allocated for more than that.
template <typename Range>
Result<std::vector<Range>> make_ranges(const Json& json) {
  const Json* count = json.find("count");
  const Json* arrays = json.find("array");
  if (count == nullptr || !count->unsigned_integer() || arrays == nullptr ||
      arrays->text() == nullptr || *count->unsigned_integer() > arrays->text()->size() / 5) {
    return bad_report();
  }
  return std::vector<Range>(*count->unsigned_integer());
}

Result<std::vector<HashedRange>> hashes_from_json(const Json& json) {
  CAIRN_TRY_ASSIGN(auto hashes, make_ranges<HashedRange>(json));
  CAIRN_TRY(fill(json, "array", &HashedRange::array, hashes));
  CAIRN_TRY(fill(json, "begin", &HashedRange::begin, hashes));
  CAIRN_TRY(fill(json, "end", &HashedRange::end, hashes));
  CAIRN_TRY(fill(json, "sha256", &HashedRange::sha256, hashes));
  return hashes;
}

Result<WrittenSums> sums_from_json(const Json& json) {
  CAIRN_TRY_ASSIGN(auto ranges, make_ranges<SummedRange>(json));
  CAIRN_TRY(fill(json, "array", &SummedRange::array, ranges));
  CAIRN_TRY(fill(json, "crc", &SummedRange::crc, ranges));
  CAIRN_TRY(fill(json, "chunk", &SummedRange::chunk, ranges));
  CAIRN_TRY(fill(json, "begin", &SummedRange::begin, ranges));
  CAIRN_TRY(fill(json, "end", &SummedRange::end, ranges));
  if (!std::ranges::all_of(ranges, is_range)) return bad_report();
  const Json* hashes = json.find("hashes");
  if (hashes == nullptr) return bad_report();
  CAIRN_TRY_ASSIGN(auto hashed, hashes_from_json(*hashes));
  return WrittenSums{std::move(ranges), std::move(hashed)};
}

}  // namespace

Result<std::string> dump_rank_report(const RankReport& report) {
  Json::Array sums;
  for (const WrittenSums& written : report.sums) sums.push_back(sums_to_json(written));
  const Json json(
      Json::Object{{"rank", report.rank},
                   {"failure", report.failure ? error_to_json(*report.failure) : Json()},
                   {"sums", std::move(sums)}});
  return dump_json_file(json, kReportLimits).in("the report of a rank");
}

Result<RankReport> parse_rank_report(std::string_view text) {
  const auto json = parse_json(text, kReportLimits);
  if (!json) return bad_report();
  const Json* rank = json->find("rank");
  const Json* failure = json->find("failure");
  const Json* sums = json->find("sums");
  if (rank == nullptr || !rank->integer() || *rank->integer() < 0 || *rank->integer() > (1 << 24) ||
      failure == nullptr || sums == nullptr || sums->array() == nullptr) {
    return bad_report();
  }
  RankReport report;
  report.rank = static_cast<int>(*rank->integer());
  if (!failure->is_null()) {
    report.failure = error_from_json(*failure);
    if (!report.failure) return bad_report();
  }
  for (const Json& written : *sums->array()) {
    CAIRN_TRY_ASSIGN(auto parsed, sums_from_json(written));
    report.sums.push_back(std::move(parsed));
  }
  return report;
}

}  // namespace cairn
