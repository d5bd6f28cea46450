// SPDX-License-Identifier: Apache-2.0
// A coordinator in front of another one. Tests override what they want to hear or to spoil.
#pragma once

#include <string_view>
#include <vector>

#include "cairn/coord/coordinator.h"

namespace cairn::testing {

/// Passes everything on. Threading: that of the coordinator behind it, which must outlive it.
class ForwardingCoordinator : public coord::Coordinator {
 public:
  explicit ForwardingCoordinator(coord::Coordinator& behind) : behind_(behind) {}

  int rank() const override { return behind_.rank(); }
  int count() const override { return behind_.count(); }
  Result<void> barrier(std::string_view phase, Deadline deadline) override {
    return behind_.barrier(phase, deadline);
  }
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    return behind_.broadcast(bytes, phase, deadline);
  }
  Result<std::vector<Buffer>> gather(ByteSpan bytes, std::string_view phase,
                                     Deadline deadline) override {
    return behind_.gather(bytes, phase, deadline);
  }

 private:
  coord::Coordinator& behind_;
};

}  // namespace cairn::testing
