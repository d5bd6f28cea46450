// SPDX-License-Identifier: Apache-2.0
// An error as one process tells it to others in a file: code and sentence, with the token in
// brackets.
#pragma once

#include <optional>

#include "cairn/base/error.h"
#include "cairn/base/json.h"

namespace cairn::inline checkpoint {

Json error_to_json(const Error& error);
/// Its reason is ranks/failed: tokens are static, and only the text of this one is known. Nothing
/// if `json` is no such error.
std::optional<Error> error_from_json(const Json& json);

}  // namespace cairn::inline checkpoint
