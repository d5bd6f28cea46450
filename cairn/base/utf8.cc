// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/utf8.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace cairn {
namespace {

constexpr bool is_continuation(unsigned char byte) { return (byte & 0xc0u) == 0x80u; }

constexpr std::size_t sequence_size(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

// The smallest code point that needs this many bytes; below it the sequence is overlong.
constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};

std::size_t skip_ascii(std::string_view text, std::size_t at) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  while (at + 8 <= text.size()) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & kHighBits) != 0) break;
    at += 8;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Controls of C0 and C1, marks and overrides of direction, separators of lines, and format
// characters that nobody sees. Joiners are letters of some scripts and stay.
constexpr Range kUnprintable[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c}, {0x200b, 0x200b}, {0x200e, 0x200f},
    {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
};

bool is_unprintable(std::uint32_t code) {
  return std::ranges::any_of(kUnprintable, [code](const Range& range) {
    return code >= range.first && code <= range.last;
  });
}

std::string escape_code(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  if (code < 0x80) return fmt::format("\\x{:02x}", code);
  return code < 0x10000 ? fmt::format("\\u{:04x}", code) : fmt::format("\\U{:08x}", code);
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t size = sequence_size(lead);
  if (size == 0 || size > text.size()) return {};
  if (size == 1) return {lead, 1};
  std::uint32_t code = lead & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (!is_continuation(byte)) return {};
    code = (code << 6) | (byte & 0x3fu);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (code < kSmallest[size] || surrogate || code > 0x10ffff) return {};
  return {code, size};
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = skip_ascii(text, 0);
  while (at < text.size()) {
    const Utf8Char next = decode_utf8(text.substr(at));
    if (next.size == 0) break;
    at = skip_ascii(text, at + next.size);
  }
  return at;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char next = decode_utf8(text);
    if (next.size == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (is_unprintable(next.code)) {
      out += escape_code(next.code);
    } else {
      out += text.substr(0, next.size);
    }
    text.remove_prefix(std::max<std::size_t>(next.size, 1));
  }
  return out;
}

}  // namespace cairn
