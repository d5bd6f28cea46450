// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/percent.h"

#include "cairn/base/base64.h"

namespace cairn {
namespace {

constexpr std::string_view kPercentDigits = "0123456789ABCDEF";

bool needs_escape(unsigned char byte) {
  return byte == '%' || byte == '.' || byte == '/' || byte == '\\' || byte < 0x20 || byte == 0x7f;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  if (text.empty()) return "%";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (needs_escape(byte)) {
      encoded += '%';
      encoded += kPercentDigits[byte >> 4];
      encoded += kPercentDigits[byte & 15];
    } else {
      encoded += c;
    }
  }
  return encoded;
}

Result<std::string> percent_decode(std::string_view text) {
  if (text == "%") return std::string();
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const Result<std::string> byte = decode_hex(text.substr(i + 1, 2));
    if (!byte || byte->size() != 1) {
      return Error(
          Code::kInvalidArgument, "percent/invalid",
          "'%' at byte " + std::to_string(i) + " of a name is not followed by two hex digits");
    }
    decoded += *byte;
    i += 2;
  }
  return decoded;
}

}  // namespace cairn
