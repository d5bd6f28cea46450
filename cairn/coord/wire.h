// SPDX-License-Identifier: Apache-2.0
// Messages as bytes: one line of JSON, then the payload.
//
//   {"call":7,"operation":"gather","phase":"save
//   100","outcome":"done","text":"","payload":5}\nhello
#pragma once

#include <cstdint>
#include <string_view>

#include "cairn/base/json.h"
#include "cairn/coord/channel.h"

namespace cairn::coord {

/// Longest first line: a channel may add a word for each of kMaxRanks ranks.
constexpr std::size_t kMaxHeader = 2u << 20;

/// A message without its payload.
struct Header {
  Message message = {};
  std::size_t payload_at = 0;
  std::size_t payload_size = 0;
  Json json = {};  ///< for what the channel added
};

/// `bytes` begins with a whole first line; `size` is that of the message. `corrupt`
/// (coord/bad-message).
Result<Header> decode_header(std::string_view bytes, std::uint64_t size);

/// The whole message. `extra` are members that the channel adds.
Result<Buffer> encode_message(const Message& message, const Json::Object& extra = {});
Result<Message> decode_message(const Buffer& bytes);

}  // namespace cairn::coord
