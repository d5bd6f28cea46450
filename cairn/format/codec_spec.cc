// SPDX-License-Identifier: Apache-2.0
#include "cairn/format/codec_spec.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "cairn/codec/registry.h"

namespace cairn::format {
namespace {

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos) return parts;
    text.remove_prefix(colon + 1);
  }
}

Result<int> parse_level(std::string_view text) {
  int level = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (status == std::errc{} && end == text.data() + text.size()) return level;
  return Error(
      Code::kInvalidArgument, "codec/bad-parameter",
      fmt::format("'{:.40}' is not a compression level; write zstd:3 or blosc:lz4:5", text));
}

std::string joined(const Json* first, const Json* second) {
  std::string text;
  if (first != nullptr && first->text() != nullptr) text += ':' + *first->text();
  if (second != nullptr && second->integral()) text += ':' + std::to_string(*second->integral());
  return text;
}

}  // namespace

CodecSpec CodecSpec::zstd(int level) {
  return CodecSpec(Json(Json::Object{{"id", "zstd"}, {"level", level}}));
}

Result<CodecSpec> CodecSpec::parse(std::string_view text) {
  if (text == "raw") return raw();
  const std::vector<std::string_view> parts = split(text);
  Json config(Json::Object{{"id", parts[0]}});
  CAIRN_TRY(codec::make_codec(config, 1));
  const bool blosc = parts[0] == "blosc";
  const std::size_t level_at = blosc ? 2 : 1;
  if (parts.size() > level_at + 1) {
    return Error(Code::kInvalidArgument, "codec/bad-parameter",
                 fmt::format("'{:.40}' has too many parts; write zstd:3 or blosc:lz4:5", text));
  }
  int level = blosc ? 5 : 1;
  if (parts.size() > level_at) {
    CAIRN_TRY_ASSIGN(level, parse_level(parts[level_at]));
  }
  if (blosc) {
    config.set("cname", parts.size() > 1 ? parts[1] : "lz4");
    config.set("clevel", level);
    config.set("shuffle", -1);
    config.set("blocksize", 0);
  } else {
    config.set("level", level);
  }
  CAIRN_TRY(codec::make_codec(config, 1));
  return CodecSpec(std::move(config));
}

std::string CodecSpec::name() const {
  if (is_raw()) return "raw";
  const Json* id = config_.find("id");
  if (id == nullptr || id->text() == nullptr) return "invalid";
  if (*id->text() == "blosc")
    return "blosc" + joined(config_.find("cname"), config_.find("clevel"));
  return *id->text() + joined(nullptr, config_.find("level"));
}

}  // namespace cairn::format
