// SPDX-License-Identifier: Apache-2.0
// Members of a zarr v2 compressor object, read strictly: unknown members are refused, because a
// misread parameter would be written back. All errors are `invalid_argument` (codec/bad-parameter).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "cairn/base/json.h"

namespace cairn::codec {

struct IntegerRange {
  std::int64_t min;
  std::int64_t max;
};

/// The object has "id" and no members other than `names`. REQUIRES: an object.
Result<void> check_members(const Json& config, std::initializer_list<std::string_view> names);

/// An integer (1 or 1.0); `otherwise` if it is missing.
Result<int> integer_parameter(const Json& config, std::string_view name, IntegerRange range,
                              int otherwise);
Result<bool> boolean_parameter(const Json& config, std::string_view name, bool otherwise);
/// One of `choices`; the first if it is missing.
Result<std::string> choice_parameter(const Json& config, std::string_view name,
                                     std::initializer_list<std::string_view> choices);

}  // namespace cairn::codec
