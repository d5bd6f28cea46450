// SPDX-License-Identifier: Apache-2.0
// An error as one process tells it to others, in a file or a message.
#pragma once

#include <optional>

#include "cairn/base/error.h"
#include "cairn/base/json.h"

namespace cairn {

Json error_to_json(const Error& error);
/// Tokens are static: one that is none of a few known ones becomes ranks/failed, and stands in the
/// sentence. Nothing if `json` is no such error.
std::optional<Error> error_from_json(const Json& json);
/// As the others hear it.
Error as_told(const Error& error);

}  // namespace cairn
