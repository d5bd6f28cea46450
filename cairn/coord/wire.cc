// SPDX-License-Identifier: Apache-2.0
#include "cairn/coord/wire.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace cairn::coord {
namespace {

constexpr auto kOperations = std::to_array({"barrier", "broadcast", "gather"});
constexpr auto kOutcomes = std::to_array({"done", "late", "mismatch", "failed"});

Error bad_message(std::string_view what) {
  return Error(Code::kCorrupt, "coord/bad-message",
               fmt::format("this is not a message of a rank: {}; use a directory that nothing else "
                           "writes to, and the same version of Cairn on every rank",
                           what));
}

template <typename Enum, std::size_t size>
Result<Enum> find_word(const Json& json, const char* name,
                       const std::array<const char*, size>& words) {
  const Json* member = json.find(name);
  if (member != nullptr && member->text() != nullptr) {
    const auto word = std::ranges::find(words, *member->text());
    if (word != words.end()) return static_cast<Enum>(word - words.begin());
  }
  return bad_message(fmt::format("no '{}' that is known", name));
}

Result<std::string> find_text(const Json& json, const char* name) {
  const Json* member = json.find(name);
  if (member != nullptr && member->text() != nullptr) return *member->text();
  return bad_message(fmt::format("no '{}'", name));
}

Result<std::uint64_t> find_number(const Json& json, const char* name) {
  const Json* member = json.find(name);
  if (const auto number = member != nullptr ? member->unsigned_integer() : std::nullopt) {
    return *number;
  }
  return bad_message(fmt::format("no '{}'", name));
}

std::string encode_header(const Message& message, const Json::Object& extra) {
  Json::Object members = extra;
  members.emplace_back("call", message.call);
  members.emplace_back("operation", kOperations[static_cast<std::size_t>(message.operation)]);
  members.emplace_back("phase", message.phase);
  members.emplace_back("outcome", kOutcomes[static_cast<std::size_t>(message.outcome)]);
  members.emplace_back("text", message.text);
  members.emplace_back("payload", std::uint64_t{message.payload.size()});
  return dump_json(Json(std::move(members))) + "\n";
}

}  // namespace

Result<Header> decode_header(std::string_view bytes, std::uint64_t size) {
  const std::size_t end = bytes.substr(0, kMaxHeader).find('\n');
  if (end == std::string_view::npos) return bad_message("its first line has no end");
  auto json = parse_json(bytes.substr(0, end), {.bytes = kMaxHeader, .depth = 4});
  if (!json) return bad_message(json.error().message());
  Header header{.payload_at = end + 1, .json = *std::move(json)};
  Message& message = header.message;
  CAIRN_TRY_ASSIGN(message.call, find_number(header.json, "call"));
  CAIRN_TRY_ASSIGN(message.operation, find_word<Operation>(header.json, "operation", kOperations));
  CAIRN_TRY_ASSIGN(message.phase, find_text(header.json, "phase"));
  if (message.phase.size() > kMaxPhase) return bad_message("its phase is too long");
  CAIRN_TRY_ASSIGN(message.outcome, find_word<CallStatus>(header.json, "outcome", kOutcomes));
  CAIRN_TRY_ASSIGN(message.text, find_text(header.json, "text"));
  CAIRN_TRY_ASSIGN(const std::uint64_t payload, find_number(header.json, "payload"));
  if (payload > kMaxPayload || payload != size - header.payload_at) {
    return bad_message("it has another length than it says");
  }
  header.payload_size = static_cast<std::size_t>(payload);
  return header;
}

Result<Buffer> encode_message(const Message& message, const Json::Object& extra) {
  const std::string header = encode_header(message, extra);
  CAIRN_TRY_ASSIGN(Buffer bytes, Buffer::allocate(header.size() + message.payload.size()));
  std::memcpy(bytes.mutable_bytes().data(), header.data(), header.size());
  if (!message.payload.empty()) {
    std::memcpy(bytes.mutable_bytes().data() + header.size(), message.payload.data(),
                message.payload.size());
  }
  return bytes;
}

Result<Message> decode_message(const Buffer& bytes) {
  CAIRN_TRY_ASSIGN(Header header, decode_header(as_text(bytes.bytes()), bytes.size()));
  const Buffer payload = bytes.slice(header.payload_at, header.payload_size);
  header.message.payload = Buffer::lend(payload.bytes(), std::make_shared<const Buffer>(payload));
  return std::move(header.message);
}

}  // namespace cairn::coord
