// SPDX-License-Identifier: Apache-2.0
// Paths with a save in flight: the one thing in Cairn that belongs to the process and not to a
// runtime. Whoever touches such a path waits, so that nobody has to wait for a save by hand before
// reading what it wrote.
#pragma once

#include <string>
#include <vector>

namespace cairn {

/// From its making until landed(), a save is in flight at the path. Ranks that are threads of one
/// process are apart: each waits for its own saves. Movable.
class InFlight {
 public:
  /// First waits for the other saves of this rank there.
  InFlight(const std::string& path, int rank);
  InFlight(InFlight&& other) noexcept;
  InFlight& operator=(InFlight&&) = delete;
  ~InFlight();

  /// The save is committed or has failed: nobody waits for it any longer.
  void landed();

 private:
  std::string place_;  // empty: landed
  int rank_;
};

/// Until this rank has no save in flight at `path`, inside it or around it. Returns at once on a
/// background thread, which would wait for itself.
void wait_for_saves(const std::string& path, int rank);

/// Where this process has saves in flight: absolute paths, in order.
std::vector<std::string> places_in_flight();

}  // namespace cairn
