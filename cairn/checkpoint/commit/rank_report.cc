// SPDX-License-Identifier: Apache-2.0
#include "cairn/checkpoint/commit/rank_report.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "cairn/base/base64.h"
#include "cairn/base/json.h"
#include "cairn/checkpoint/commit/told_error.h"

namespace cairn::inline checkpoint {

static_assert(std::endian::native == std::endian::little,
              "columns are copied as they lie in memory");

namespace {

Error bad_report() {
  return Error(Code::kCorrupt, "ranks/bad-report", "the report of a rank is damaged");
}

template <typename Member>
Json column(const std::vector<SummedRange>& ranges, Member SummedRange::* member) {
  std::vector<Member> values;
  values.reserve(ranges.size());
  for (const SummedRange& range : ranges) values.push_back(range.*member);
  return encode_base64(std::as_bytes(std::span(values)));
}

template <typename Member>
Result<void> fill(const Json& json, std::string_view name, Member SummedRange::* member,
                  std::vector<SummedRange>& ranges) {
  const Json* column = json.find(name);
  if (column == nullptr || column->text() == nullptr) return bad_report();
  const auto bytes = decode_base64(*column->text());
  if (!bytes || bytes->size() != ranges.size() * sizeof(Member)) return bad_report();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    std::memcpy(&(ranges[i].*member), bytes->data() + i * sizeof(Member), sizeof(Member));
  }
  return {};
}

Json ranges_to_json(const std::vector<SummedRange>& ranges) {
  return Json::Object{{"count", static_cast<std::uint64_t>(ranges.size())},
                      {"array", column(ranges, &SummedRange::array)},
                      {"crc", column(ranges, &SummedRange::crc)},
                      {"chunk", column(ranges, &SummedRange::chunk)},
                      {"begin", column(ranges, &SummedRange::begin)},
                      {"end", column(ranges, &SummedRange::end)}};
}

bool is_range(const SummedRange& range) {
  return range.begin < range.end && range.begin / kBlockBytes == (range.end - 1) / kBlockBytes;
}

Result<std::vector<SummedRange>> ranges_from_json(const Json& json) {
  const Json* count = json.find("count");
  const Json* crcs = json.find("crc");
  // Four bytes each, in base64: nothing is allocated for more than that.
  if (count == nullptr || !count->unsigned_integer() || crcs == nullptr ||
      crcs->text() == nullptr || *count->unsigned_integer() > crcs->text()->size() / 5) {
    return bad_report();
  }
  std::vector<SummedRange> ranges(*count->unsigned_integer());
  CAIRN_TRY(fill(json, "array", &SummedRange::array, ranges));
  CAIRN_TRY(fill(json, "crc", &SummedRange::crc, ranges));
  CAIRN_TRY(fill(json, "chunk", &SummedRange::chunk, ranges));
  CAIRN_TRY(fill(json, "begin", &SummedRange::begin, ranges));
  CAIRN_TRY(fill(json, "end", &SummedRange::end, ranges));
  if (!std::ranges::all_of(ranges, is_range)) return bad_report();
  return ranges;
}

}  // namespace

std::string dump_rank_report(const RankReport& report) {
  Json::Array sums;
  for (const auto& ranges : report.sums) sums.push_back(ranges_to_json(ranges));
  const Json json(
      Json::Object{{"rank", report.rank},
                   {"failure", report.failure ? error_to_json(*report.failure) : Json()},
                   {"sums", std::move(sums)}});
  return dump_json(json, {}) + "\n";
}

Result<RankReport> parse_rank_report(std::string_view text) {
  const auto json = parse_json(text, JsonLimits{.bytes = kMaxRankReportBytes});
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
  for (const Json& ranges : *sums->array()) {
    CAIRN_TRY_ASSIGN(auto parsed, ranges_from_json(ranges));
    report.sums.push_back(std::move(parsed));
  }
  return report;
}

}  // namespace cairn::inline checkpoint
