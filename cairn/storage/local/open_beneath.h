// SPDX-License-Identifier: Apache-2.0
// openat() that meets no symbolic link and stays below its directory.
#pragma once

#include "cairn/storage/local/unique_fd.h"

namespace cairn::storage {

/// As openat(dir, path, flags | O_CLOEXEC, 0666). Invalid with errno set on failure: ELOOP for a
/// symbolic link in any component, EXDEV for a path that is absolute or has a ".." in it.
UniqueFd open_beneath(int dir, const char* path, int flags);

/// The two ways to do it: one system call of Linux 5.6 (ENOSYS before, EPERM in some sandboxes),
/// and one openat() for each component.
UniqueFd open_beneath_at_once(int dir, const char* path, int flags);
UniqueFd open_beneath_by_steps(int dir, const char* path, int flags);

}  // namespace cairn::storage
