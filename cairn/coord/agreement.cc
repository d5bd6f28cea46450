// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/agreement.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/coord/told_error.h"

namespace cairn::coord {

namespace {

std::string dump(const Result<void>& result) {
  return result ? std::string() : dump_json(error_to_json(result.error()));
}

std::optional<Error> parse(std::string_view text) {
  const auto json = parse_json(text, {});
  return json ? error_from_json(*json) : std::nullopt;
}

Result<std::string> broadcast_text(const Ranks& ranks, const std::string& text,
                                   std::string_view phase) {
  CAIRN_TRY_ASSIGN(const Buffer heard,
                   ranks.coordinator->broadcast(as_bytes(text), phase, ranks.deadline));
  return std::string(as_text(heard.bytes()));
}

}  // namespace

Result<void> agree(const Ranks& ranks, const Result<void>& mine, std::string_view phase,
                   const std::function<Result<void>()>& last) {
  if (ranks.alone()) return mine && last ? last() : mine;
  CAIRN_TRY_ASSIGN(const auto said, gather_texts(ranks, dump(mine), phase));
  std::string verdict;
  for (std::size_t rank = 0; rank < said.size() && verdict.empty(); ++rank) {
    if (auto error = parse(said[rank]))
      verdict = dump(std::move(*error).in(fmt::format("rank {}", rank)));
  }
  if (last && ranks.coordinator->rank() == 0 && verdict.empty())
    verdict = dump(last().in("rank 0"));
  CAIRN_TRY_ASSIGN(const std::string heard, broadcast_text(ranks, verdict, phase));
  if (auto error = parse(heard)) return *std::move(error);
  return {};
}

Result<std::vector<std::string>> gather_texts(const Ranks& ranks, const std::string& mine,
                                              std::string_view phase) {
  if (ranks.alone()) return std::vector{mine};
  CAIRN_TRY_ASSIGN(const auto said,
                   ranks.coordinator->gather(as_bytes(mine), phase, ranks.deadline));
  std::vector<std::string> texts;
  texts.reserve(said.size());
  for (const Buffer& one : said) texts.emplace_back(as_text(one.bytes()));
  return texts;
}

Result<std::string> hear_rank_0(const Ranks& ranks, const Result<std::string>& said,
                                std::string_view phase) {
  if (ranks.alone()) return said;
  std::string message;
  if (ranks.coordinator->rank() == 0) {
    message = dump_json(said ? Json(Json::Object{{"said", *said}})
                             : Json(Json::Object{{"failure", error_to_json(said.error())}}));
  }
  CAIRN_TRY_ASSIGN(const std::string heard, broadcast_text(ranks, message, phase));
  const auto json = parse_json(heard, {});
  const Json* failure = json ? json->find("failure") : nullptr;
  if (failure != nullptr) {
    if (ranks.coordinator->rank() == 0) return said;
    if (auto error = error_from_json(*failure)) return std::move(*error).in("rank 0");
  }
  const Json* text = json ? json->find("said") : nullptr;
  if (text == nullptr || text->text() == nullptr) {
    return Error(Code::kInternal, "coord/bad-text",
                 "rank 0 sent a message that this version does not understand");
  }
  return *text->text();
}

}  // namespace cairn::coord
