// SPDX-License-Identifier: Apache-2.0
// UTF-8 as RFC 3629 has it: no surrogates, nothing overlong, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn {

/// One code point and how many bytes it took; `size` is 0 where no valid sequence begins.
struct Utf8Char {
  std::uint32_t code = 0;
  std::size_t size = 0;
};

/// The code point at the front of `text`. REQUIRES: !text.empty().
Utf8Char decode_utf8(std::string_view text);

/// How many bytes at the front are valid UTF-8; text.size() when all of it is.
std::size_t valid_utf8_prefix(std::string_view text);

/// The text on one line and as a terminal may show it: control characters, those that turn the
/// direction of text or cannot be seen, and bytes that are no UTF-8 stand there as "\n", "\x1b",
/// "\u202e". For whatever comes from outside: names, metadata, errors about them. What has passed
/// once passes again unchanged.
std::string printable(std::string_view text);

inline bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

}  // namespace cairn
