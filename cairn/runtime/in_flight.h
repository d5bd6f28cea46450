// SPDX-License-Identifier: Apache-2.0
// Paths with a save in flight: the only state in Cairn that belongs to the process instead of a
// runtime. Calls that touch such a path wait, so users need not wait for a save before they read
// what it writes.
#pragma once

#include <string>
#include <vector>

namespace cairn {

/// A save is in flight at the path from construction until landed(). Ranks that are threads of one
/// process are independent: each waits for its own saves. Movable.
class InFlight {
 public:
  /// Waits for the other saves of this rank at the path.
  InFlight(const std::string& path, int rank);
  InFlight(InFlight&& other) noexcept;
  InFlight& operator=(InFlight&&) = delete;
  ~InFlight();

  /// The save has committed or failed: nobody waits for it any longer.
  void landed();

 private:
  std::string place_;  // empty: landed
  int rank_;
};

/// Blocks until this rank has no save in flight at `path`, inside it or above it. Returns at once
/// on a background thread, which would wait for itself.
void wait_for_saves(const std::string& path, int rank);

/// The paths of all saves in flight in this process: absolute, sorted.
std::vector<std::string> places_in_flight();

}  // namespace cairn
