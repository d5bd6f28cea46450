// SPDX-License-Identifier: Apache-2.0
// From a URI to a destination or a run: one row a scheme in open.cc.
#pragma once

#include <memory>
#include <string>

#include "cairn/base/uri.h"
#include "cairn/commit/destination.h"
#include "cairn/commit/run_directory.h"
#include "cairn/runtime/runtime.h"

namespace cairn {

/// Touches nothing yet. `unimplemented` (save/store-unsupported) for a scheme that has no row. The
/// runtime must outlive it.
Result<std::unique_ptr<Destination>> open_destination(const Uri& uri, Runtime& runtime);
/// For what is there already, by its path or URL. Errors of parse_uri(); `unimplemented`
/// (uri/not-local) for a scheme that has no row.
Result<std::unique_ptr<Destination>> open_destination(const std::string& path, Runtime& runtime);
/// The run that lies there, in the same way.
Result<std::unique_ptr<RunDirectory>> open_run(const std::string& path, Runtime& runtime);

/// The error that open_destination() would give for the scheme.
Result<void> check_destination(const Uri& uri);

}  // namespace cairn
