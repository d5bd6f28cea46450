// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/damage_note.h"

#include "cairn/base/json.h"
#include "cairn/commit/open.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

constexpr std::size_t kMaxNoteBytes = 64 * kKiB;
constexpr std::size_t kLongestSentence = 4 * kKiB;

}  // namespace

Result<void> note_damage(const std::string& path, const std::string& why, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto place, open_destination(path, runtime));
  using Text = std::optional<std::string>;
  return place->update(
      std::string(kDamageName), [&](const Snapshot& now, const Text& before) -> Result<Text> {
        if (!now.record) return before;
        return Text(dump_json(
            Json::Object{{"version", now.version()}, {"damage", why.substr(0, kLongestSentence)}}));
      });
}

std::string find_damage(Destination& place, const Snapshot& now) {
  if (!now.record) return {};
  const auto text = place.read(std::string(kDamageName), kMaxNoteBytes);
  const auto json = text && *text ? parse_json(**text, {}) : Result<Json>(Json());
  const Json* version = json ? json->find("version") : nullptr;
  const Json* damage = json ? json->find("damage") : nullptr;
  const bool about_this =
      version != nullptr && version->text() != nullptr && *version->text() == now.version();
  return about_this && damage != nullptr && damage->text() != nullptr ? *damage->text() : "";
}

}  // namespace cairn
