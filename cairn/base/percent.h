// SPDX-License-Identifier: Apache-2.0
// Percent-encoding of names that become file names.
#pragma once

#include <string>
#include <string_view>

#include "cairn/base/result.h"

namespace cairn {

/// Encodes `%`, `.`, `/`, `\`, control bytes (00-1f, 7f) and the empty text (as "%"), upper-case
/// hex. Everything else, UTF-8 included, stays. (TensorStore takes `\` for a separator.)
std::string percent_encode(std::string_view text);

/// The inverse; accepts lower-case hex. `invalid_argument` (percent/invalid) for a `%` that neither
/// begins an escape nor is the whole text.
Result<std::string> percent_decode(std::string_view text);

}  // namespace cairn
