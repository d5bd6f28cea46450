// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "cairn/load/load.h"
#include "cairn/save/save.h"

cairn::Result<cairn::SaveReport> save_ones(const std::string& path);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto saved = save_ones(argv[1]);
  if (!saved) {
    std::printf("%s\n", saved.error().to_string().c_str());
    return 1;
  }
  cairn::Runtime runtime;
  const auto loaded = cairn::load(argv[1], {}, runtime);
  if (!loaded) {
    std::printf("%s\n", loaded.error().to_string().c_str());
    return 1;
  }
  const auto missing = cairn::load("/nowhere", {}, runtime);
  std::printf("%ju array, %ju bytes, %zu leaves, %s\n", saved->arrays, loaded->report.bytes,
              loaded->tree.children().size(), std::string(missing.error().reason()).c_str());
}
