// SPDX-License-Identifier: Apache-2.0
#include "cairn/run/ownership.h"

#include "cairn/commit/open.h"

namespace cairn {

Result<std::shared_ptr<RunOwner>> take_run(const std::string& base, const OwnershipOptions& options,
                                           Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  return run->take(options);
}

Result<std::optional<SeenOwner>> find_owner(const std::string& base, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const auto run, open_run(base, runtime));
  return run->find_owner();
}

}  // namespace cairn
