// SPDX-License-Identifier: Apache-2.0
// Writes characters, categories and sets of them as PCRE2 has them.
#pragma once

#include <string>

#include "cairn/sharding/regex_reader.h"

namespace cairn {

/// A character that stands for itself, outside of a set. Whatever case, if `fold`.
void append_literal(std::string& out, char32_t code, bool fold);
/// \d and the like, outside of a set.
void append_category(std::string& out, char32_t letter);
/// The set whose '[' has just been taken.
Result<void> append_set(RegexReader& reader, std::string& out, bool fold);

}  // namespace cairn
