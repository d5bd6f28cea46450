// SPDX-License-Identifier: Apache-2.0
// Names of leaves. A key path is a list of parts; as text the parts are joined with '.', as a
// directory with '/', and inside a part `%`, `.`, `/`, `\`, control bytes and the empty part
// are percent-encoded, so that text and directory are one to one with the parts.
// docs/format/structure.md has the rules.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/base/result.h"

namespace cairn {

/// Key of a child in its container: text (dict key, attribute) or an integer (dict key, index).
class Key {
 public:
  // NOLINTBEGIN(google-explicit-constructor): a key is written as what it is.
  Key(std::string text) : is_text_(true), text_(std::move(text)) {}
  Key(std::string_view text) : Key(std::string(text)) {}
  Key(const char* text) : Key(std::string(text)) {}
  Key(std::int64_t number) : number_(number) {}
  Key(int number) : Key(std::int64_t{number}) {}
  // NOLINTEND(google-explicit-constructor)

  bool is_number() const { return !is_text_; }
  std::int64_t number() const { return number_; }    ///< REQUIRES: is_number()
  const std::string& text() const { return text_; }  ///< REQUIRES: !is_number()
  /// The text, or the number in decimal.
  std::string part() const;

  /// Numbers before texts, numbers by size, texts by bytes: JAX's order where JAX has one.
  auto operator<=>(const Key&) const = default;

 private:
  bool is_text_ = false;
  std::int64_t number_ = 0;
  std::string text_;
};

/// Finds two keys with one part, such as 0 and "0", or a repeated key. Linear if the keys are
/// sorted.
std::optional<std::pair<Key, Key>> find_collision(std::vector<const Key*> keys);

/// Parts of a leaf's name, not encoded. Threading: compatible.
class KeyPath {
 public:
  /// Longest encoded part, the limit of file names.
  static constexpr std::size_t kMaxPartBytes = 255;

  KeyPath() = default;
  explicit KeyPath(std::vector<std::string> parts) : parts_(std::move(parts)) {}

  /// "a.b.0". `invalid_argument`: keypath/slash (a bare '/'), keypath/empty-part, percent/invalid.
  static Result<KeyPath> parse(std::string_view text);
  /// "a/b/0". Dots inside a name stay part of it, for directories that other systems made.
  /// `invalid_argument`: keypath/empty-part, keypath/dot-part ("." or ".."), percent/invalid.
  static Result<KeyPath> parse_directory(std::string_view directory);

  const std::vector<std::string>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  KeyPath child(std::string part) const;
  /// Is it equal to `above`, or below it?
  bool starts_with(const KeyPath& above) const;

  /// Encoded and joined with '.'; "" for the root.
  std::string text() const;
  /// Encoded and joined with '/'; "" for the root.
  std::string directory() const;
  /// `invalid_argument` (keypath/part-too-long) if an encoded part exceeds kMaxPartBytes.
  Result<void> check() const;

  auto operator<=>(const KeyPath&) const = default;

 private:
  std::vector<std::string> parts_;
};

/// What KeyPath::check() does, for one part.
Result<void> check_part(std::string_view part);

}  // namespace cairn
