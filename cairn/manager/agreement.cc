// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/agreement.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/checkpoint/commit/told_error.h"

namespace cairn::inline manager {

namespace {

std::string dump(const Result<void>& result) {
  return result ? std::string() : dump_json(error_to_json(result.error()));
}

std::optional<Error> parse(std::string_view text) {
  const auto json = parse_json(text, {});
  return json ? error_from_json(*json) : std::nullopt;
}

}  // namespace

Result<void> agree(const Result<void>& mine, std::string_view phase,
                   const AsyncCheckpointManager& manager,
                   const std::function<Result<void>()>& last) {
  Runtime& runtime = *manager.runtime();
  if (runtime.ranks() == 1) return mine && last ? last() : mine;
  CAIRN_TRY_ASSIGN(const auto said, tell(dump(mine), phase, manager));
  std::string verdict;
  for (std::size_t rank = 0; rank < said.size() && verdict.empty(); ++rank) {
    if (auto error = parse(said[rank]))
      verdict = dump(std::move(*error).in(fmt::format("rank {}", rank)));
  }
  if (last && runtime.rank() == 0 && verdict.empty()) verdict = dump(last().in("rank 0"));
  CAIRN_TRY_ASSIGN(const Buffer heard,
                   runtime.coordinator()->broadcast(as_bytes(verdict), phase,
                                                    Deadline::in(manager.options().timeout)));
  if (auto error = parse(as_text(heard.bytes()))) return *std::move(error);
  return {};
}

Result<std::vector<std::string>> tell(const std::string& mine, std::string_view phase,
                                      const AsyncCheckpointManager& manager) {
  Runtime& runtime = *manager.runtime();
  if (runtime.ranks() == 1) return std::vector{mine};
  CAIRN_TRY_ASSIGN(const auto said,
                   runtime.coordinator()->gather(as_bytes(mine), phase,
                                                 Deadline::in(manager.options().timeout)));
  std::vector<std::string> texts;
  for (const Buffer& one : said) texts.emplace_back(as_text(one.bytes()));
  return texts;
}

Result<std::string> hear(const Result<std::string>& said, std::string_view phase,
                         const AsyncCheckpointManager& manager) {
  Runtime& runtime = *manager.runtime();
  if (runtime.ranks() == 1) return said;
  std::string message;
  if (runtime.rank() == 0) {
    message = dump_json(said ? Json(Json::Object{{"said", *said}})
                             : Json(Json::Object{{"failure", error_to_json(said.error())}}));
  }
  CAIRN_TRY_ASSIGN(const Buffer heard,
                   runtime.coordinator()->broadcast(as_bytes(message), phase,
                                                    Deadline::in(manager.options().timeout)));
  const auto json = parse_json(as_text(heard.bytes()), {});
  const Json* failure = json ? json->find("failure") : nullptr;
  if (failure != nullptr) {
    if (runtime.rank() == 0) return said;
    if (auto error = error_from_json(*failure)) return std::move(*error).in("rank 0");
  }
  const Json* text = json ? json->find("said") : nullptr;
  if (text == nullptr || text->text() == nullptr) {
    return Error(Code::kInternal, "run/bad-message",
                 "rank 0 said something that this version does not understand");
  }
  return *text->text();
}

}  // namespace cairn::inline manager
