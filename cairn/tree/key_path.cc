// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/key_path.h"

#include <algorithm>

#include <fmt/format.h>

#include "cairn/base/percent.h"
#include "cairn/tree/key_depth.h"

namespace cairn {
namespace {

std::string join_encoded(const std::vector<std::string>& parts, char separator) {
  std::string joined;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) joined += separator;
    joined += percent_encode(part);
  }
  return joined;
}

Error refused(const char* reason, std::string_view name, std::string_view why) {
  return {Code::kInvalidArgument, reason,
          fmt::format("key path '{}': {}", shortened_name(name), why)};
}

// `parse_part` turns each piece between separators into a part.
template <typename ParsePart>
Result<KeyPath> split(std::string_view text, char separator, const ParsePart& parse_part) {
  std::vector<std::string> parts;
  if (text.empty()) return KeyPath();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    if (piece.empty()) {
      return refused("keypath/empty-part", text, "a part is empty; an empty key is written '%'");
    }
    CAIRN_TRY_ASSIGN(std::string part, parse_part(piece));
    parts.push_back(std::move(part));
    begin = end + 1;
    CAIRN_TRY(check_key_depth(parts.size(), text));
  }
  return KeyPath(std::move(parts));
}

}  // namespace

std::string Key::part() const { return is_number() ? std::to_string(number()) : text(); }

std::optional<std::pair<Key, Key>> find_collision(std::vector<const Key*> keys) {
  const auto less = [](const Key* a, const Key* b) { return *a < *b; };
  if (!std::is_sorted(keys.begin(), keys.end(), less)) std::sort(keys.begin(), keys.end(), less);
  const auto equal = [](const Key* a, const Key* b) { return *a == *b; };
  const auto twin = std::adjacent_find(keys.begin(), keys.end(), equal);
  if (twin != keys.end()) return std::pair(**twin, **twin);
  const auto is_number = [](const Key* key) { return key->is_number(); };
  const auto texts = std::partition_point(keys.begin(), keys.end(), is_number);
  if (texts == keys.end()) return std::nullopt;
  for (auto number = keys.begin(); number != texts; ++number) {
    const Key spelled((*number)->part());
    if (std::binary_search(texts, keys.end(), &spelled, less)) return std::pair(**number, spelled);
  }
  return std::nullopt;
}

Result<KeyPath> KeyPath::parse(std::string_view text) {
  return split(text, '.', [text](std::string_view piece) -> Result<std::string> {
    if (piece.find('/') != piece.npos) {
      return refused("keypath/slash", text,
                     "parts are separated by '.'; write '%2F' for a '/' inside a key");
    }
    return percent_decode(piece).in(
        [text] { return fmt::format("key path '{}'", shortened_name(text)); });
  });
}

Result<KeyPath> KeyPath::parse_directory(std::string_view directory) {
  return split(directory, '/', [directory](std::string_view piece) -> Result<std::string> {
    if (piece == "." || piece == "..") {
      return refused("keypath/dot-part", directory, "'.' and '..' do not name a leaf");
    }
    return percent_decode(piece).in(
        [directory] { return fmt::format("directory '{}'", shortened_name(directory)); });
  });
}

KeyPath KeyPath::child(std::string part) const {
  KeyPath path;
  path.parts_.reserve(parts_.size() + 1);
  path.parts_ = parts_;
  path.parts_.push_back(std::move(part));
  return path;
}

bool KeyPath::starts_with(const KeyPath& above) const {
  return parts_.size() >= above.parts_.size() &&
         std::equal(above.parts_.begin(), above.parts_.end(), parts_.begin());
}

std::string KeyPath::text() const { return join_encoded(parts_, '.'); }

std::string KeyPath::directory() const { return join_encoded(parts_, '/'); }

Result<void> KeyPath::check() const {
  for (const std::string& part : parts_) CAIRN_TRY(check_part(part));
  return {};
}

Result<void> check_part(std::string_view part) {
  // An escape takes three bytes: shorter parts fit whatever is in them.
  if (part.size() <= KeyPath::kMaxPartBytes / 3) return {};
  const std::size_t size = percent_encode(part).size();
  if (size <= KeyPath::kMaxPartBytes) return {};
  return Error(
      Code::kInvalidArgument, "keypath/part-too-long",
      fmt::format("the key that begins with '{}' takes {} bytes as a file name, at most {} "
                  "are possible; use a shorter key",
                  percent_encode(part.substr(0, 40)), size, KeyPath::kMaxPartBytes));
}

}  // namespace cairn
