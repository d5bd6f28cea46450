// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/base64.h"

#include <array>
#include <cstdint>

namespace cairn {
namespace {

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> make_base64_digits() {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < kBase64.size(); ++i) {
    digits[static_cast<unsigned char>(kBase64[i])] = static_cast<std::uint8_t>(i);
  }
  return digits;
}
constexpr std::array<std::uint8_t, 256> kBase64Digits = make_base64_digits();

Error not_base64() {
  return {Code::kCorrupt, "base64/invalid", "text is not canonical padded base64"};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string encode_base64(ByteSpan bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group =
          (group << 8) | (i + j < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + j]) : 0);
    }
    text += kBase64[group >> 18];
    text += kBase64[(group >> 12) & 63];
    text += i + 1 < bytes.size() ? kBase64[(group >> 6) & 63] : '=';
    text += i + 2 < bytes.size() ? kBase64[group & 63] : '=';
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return not_base64();
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : digits) {
    const std::uint8_t digit = kBase64Digits[static_cast<unsigned char>(c)];
    if (digit == kNoDigit) return not_base64();
    bits = (bits << 6) | digit;
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 0xff);
    }
  }
  // What is left over are bits that no byte needs; a canonical writer leaves them zero.
  if ((bits & ((1u << held) - 1)) != 0) return not_base64();
  return bytes;
}

std::string encode_hex(ByteSpan bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte byte : bytes) {
    text += kHex[std::to_integer<std::size_t>(byte >> 4)];
    text += kHex[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

Result<std::string> decode_hex(std::string_view text) {
  const auto invalid = [] {
    return Error(Code::kCorrupt, "hex/invalid", "text is not an even number of hex digits");
  };
  if (text.size() % 2 != 0) return invalid();
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = hex_digit(text[i]);
    const int low = hex_digit(text[i + 1]);
    if (high < 0 || low < 0) return invalid();
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace cairn
