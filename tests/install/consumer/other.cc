// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/save.h"

/// Deriving from a class of the library needs its type information and its virtual table.
class StoppedClock final : public cairn::Clock {
 public:
  Wall wall() const override { return Wall{}; }
  Mono monotonic() const override { return Mono{}; }
  void pause(std::chrono::nanoseconds) override {}
};

cairn::Result<cairn::SaveReport> save_ones(const std::string& path) {
  StoppedClock clock;
  cairn::Runtime runtime({.clock = &clock});
  CAIRN_TRY_ASSIGN(cairn::Array ones, cairn::Array::zeros(cairn::DType::kInt8, {3, 2}));
  for (std::byte& element : ones.mutable_bytes()) element = std::byte{1};
  const auto tree = cairn::Tree::dict({{"ones", ones}, {"step", cairn::Value(cairn::Integer(7))}});
  return cairn::save_tree(tree, path, {}, runtime);
}
