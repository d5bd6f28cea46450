// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/base/json.h"

/// Deriving from a class of the library needs its type information and its virtual table.
class StoppedClock final : public cairn::Clock {
 public:
  Wall wall() const override { return Wall{}; }
  Mono monotonic() const override { return Mono{}; }
  void pause(std::chrono::nanoseconds) override {}
};

std::string stopped_time() { return cairn::format_timestamp(StoppedClock().wall()); }

cairn::Result<cairn::Json> parse(const std::string& text) { return cairn::parse_json(text); }
