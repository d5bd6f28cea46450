// SPDX-License-Identifier: Apache-2.0
// Translates regular expressions of Python's `re` to PCRE2 with the same meaning.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

constexpr std::size_t kMaxPatternBytes = std::size_t{16} << 10;

/// For PCRE2 with UTF, UCP, ALT_CIRCUMFLEX and '\n' as the only newline. The expression is read as
/// Python 3.11 reads it, and only what it says is written, so that nothing passes that PCRE2 alone
/// knows. `invalid_argument`: regex/utf8, regex/too-long, regex/syntax (refused by Python too) and
/// regex/unsupported (good in Python: flag (?a), characters by name, names of groups that are not
/// ASCII, references to groups without regard to case, conditions on open groups, repeats over
/// 65535 times, very deep nesting), each with the position.
Result<std::string> pcre_of_python(std::string_view pattern);

}  // namespace cairn
