// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/prefixes.h"

namespace cairn {

// Programs of the reference system look for the beginnings of these texts.

Result<void> check_prefix_to_save(std::string_view prefix) {
  if (!prefix.empty()) return {};
  return Error(Code::kInvalidArgument, "save/no-prefix",
               "A non-empty string prefix is required when structured=True and by save_pytree(), "
               "such as \"model\"; save_tree() does without");
}

Result<void> check_prefix_to_load(std::string_view prefix) {
  if (!prefix.empty()) return {};
  return Error(Code::kInvalidArgument, "load/no-prefix",
               "A non-empty string prefix is required when structured=True and by load_pytree(): "
               "the one that the tree was saved under");
}

}  // namespace cairn
