// SPDX-License-Identifier: Apache-2.0
// An error that one process passes to others, in a file or a message.
#pragma once

#include <optional>

#include "cairn/base/error.h"
#include "cairn/base/json.h"

namespace cairn {

Json error_to_json(const Error& error);
/// Reason tokens are static texts: an unknown token becomes ranks/failed, and the sentence keeps
/// it. nullopt if `json` is no such error.
std::optional<Error> error_from_json(const Json& json);
/// The error as other ranks get it.
Error as_told(const Error& error);

}  // namespace cairn
