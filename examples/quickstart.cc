// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "cairn/cairn.h"

int main() {
  cairn::Runtime runtime;
  const auto weights = cairn::Array::zeros(cairn::DType::kBfloat16, {1024, 1024});
  if (!weights) return 1;
  const auto tree = cairn::Tree::dict({{"step", cairn::Value(cairn::Integer(100))},
                                       {"params", cairn::Tree::dict({{"kernel", *weights}})}});

  const auto saved = cairn::save_tree(tree, "quickstart", {}, runtime);
  const auto loaded = cairn::load("quickstart", {.dtype = cairn::DType::kFloat32}, runtime);
  if (!saved || !loaded) return 1;
  std::printf("saved %ju bytes, loaded %ju\n", saved->bytes, loaded->report.bytes);
}
