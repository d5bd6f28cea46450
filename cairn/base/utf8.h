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

/// The text on one line, safe for a terminal: control characters, characters that are invisible or
/// change the direction of text, and bytes that are not UTF-8 are shown as "\n", "\x1b", "\u202e".
/// For names, metadata and errors from outside. Idempotent.
std::string printable(std::string_view text);

inline bool is_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

}  // namespace cairn
