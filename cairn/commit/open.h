// SPDX-License-Identifier: Apache-2.0
// From a URI to a destination: one row a scheme in open.cc.
#pragma once

#include <memory>

#include "cairn/base/uri.h"
#include "cairn/commit/destination.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Touches nothing yet. `unimplemented` (save/store-unsupported) for a scheme that has no row. The
/// runtime must outlive it.
Result<std::unique_ptr<Destination>> open_destination(const Uri& uri, Runtime& runtime);

/// The error that open_destination() would give for the scheme.
Result<void> check_destination(const Uri& uri);

}  // namespace cairn
