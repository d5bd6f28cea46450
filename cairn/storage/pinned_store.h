// SPDX-License-Identifier: Apache-2.0
// A store that reads each object in one state, even if others replace or change it meanwhile.
#pragma once

#include <cstddef>
#include <memory>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// Maximum number of objects that one pinned store holds open.
constexpr std::size_t kMostHeldObjects = 128;

/// The first open() of a key holds the object open: later calls read the same object, even if it
/// was replaced or deleted. If an object changed in place, reading fails with `unavailable`
/// (storage/replaced), because the bytes read before may not match. Objects beyond kMostHeldObjects
/// are not held, and fail in the same way once they are replaced. Otherwise as `behind`. Threading:
/// safe.
std::shared_ptr<Store> pin_objects(std::shared_ptr<Store> behind);

}  // namespace cairn::storage
