// SPDX-License-Identifier: Apache-2.0
// A store that reads each object in one state, although others replace or change it meanwhile.
#pragma once

#include <cstddef>
#include <memory>

#include "cairn/storage/store.h"

namespace cairn::storage {

/// Maximum number of objects that one pinned store holds open.
constexpr std::size_t kMostHeldObjects = 128;

/// The first open() of a key holds the object: later ones read the same one, also after another was
/// put in its place or it was deleted. An object that changed in place is `unavailable`
/// (storage/replaced): what was read before may not fit. So is one of those beyond
/// kMostHeldObjects, which are not held, once it is replaced. All else as `behind`. Threading:
/// safe.
std::shared_ptr<Store> pin_objects(std::shared_ptr<Store> behind);

}  // namespace cairn::storage
