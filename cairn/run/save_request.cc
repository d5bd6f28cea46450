// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/save_request.h"

#include <utility>

#include <fmt/format.h>

#include "cairn/base/json.h"
#include "cairn/commit/open.h"
#include "cairn/commit/process_name.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

constexpr std::uint64_t kMaxRequestBytes = 64 * kKiB;

}  // namespace

Result<void> request_save(const std::string& base, const std::string& reason, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_destination(base, runtime));
  const ProcessName from = this_process();
  const std::string text =
      dump_json(Json(Json::Object{{"reason", reason},
                                  {"time", format_timestamp(runtime.clock().wall())},
                                  {"host", from.host},
                                  {"process", from.process}}));
  return run->write(std::string(kRequestName), text);
}

Result<std::optional<std::string>> find_request(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_destination(base, runtime));
  CAIRN_TRY_ASSIGN(const auto text, run->read(std::string(kRequestName), kMaxRequestBytes));
  if (!text) return std::optional<std::string>();
  const auto json = parse_json(*text);
  const Json* reason = json ? json->find("reason") : nullptr;
  // What cannot be read is a request all the same: somebody may have made it with `touch`.
  return std::optional(reason != nullptr && reason->text() != nullptr ? *reason->text()
                                                                      : std::string());
}

RequestWatcher::RequestWatcher(std::string base, Runtime& runtime)
    : base_(std::move(base)),
      runtime_(runtime),
      subscription_(runtime.ticker().every(std::chrono::seconds(1), [this] { look(); })) {}

void RequestWatcher::look() {
  if (is_requested()) return;
  const auto found = find_request(base_, runtime_);
  if (!found || !*found) return;
  requested_.store(true, std::memory_order_relaxed);
  runtime_.log(LogLevel::kInfo, "checkpointer/requested",
               fmt::format("a save is asked for: {}", **found));
}

void RequestWatcher::answered() {
  if (!is_requested()) return;
  const auto run = open_destination(base_, runtime_);
  if (run) (*run)->remove(std::string(kRequestName)).ignore_error("then one more save is made");
  requested_.store(false, std::memory_order_relaxed);
}

}  // namespace cairn
