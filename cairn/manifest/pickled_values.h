// SPDX-License-Identifier: Apache-2.0
// Converts the content of a pickle to our values and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cairn/base/json.h"
#include "cairn/base/pickle.h"
#include "cairn/tree/value.h"

namespace cairn {

/// nullopt if it is not an integer or does not fit.
std::optional<std::int64_t> pickled_int64(const Pickle::Item& item);

/// A leaf that is not an array. `unimplemented` (pickle/unsupported) for values that only execution
/// could make; complex(1.0, 2.0) is the only call that is understood.
Result<Value> value_of_pickle(const Pickle& pickle);

/// What classes need besides their children: the `static` of docs/format/structure.md. Threading:
/// compatible.
class PickledStatics {
 public:
  /// `pickle` must outlive it.
  explicit PickledStatics(const Pickle& pickle) : pickle_(pickle) {}

  /// nullopt for values that this JSON cannot express, for more than 1 MiB, and after kMostItems
  /// items in total, because items may be shared.
  std::optional<std::string> text(Pickle::Number number);

 private:
  static constexpr std::size_t kMostItems = std::size_t{1} << 20;

  std::optional<Json> dump(Pickle::Number number, int depth);
  bool has_room(std::size_t bytes);
  std::optional<Json> dump_items(const Pickle::Numbers& items, int depth);
  std::optional<Json> dump_dict(const Pickle::Numbers& items, int depth);

  const Pickle& pickle_;
  std::size_t seen_ = 0;
  std::size_t room_ = 0;
};

}  // namespace cairn
