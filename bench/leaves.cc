// SPDX-License-Identifier: Apache-2.0
// What many small leaves cost. `leaves plan N` plans a save of N leaves and a load of the same;
// `leaves save N DIR` saves them. bench/leaves.py counts instructions and times the command.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cairn/load/load_plan.h"
#include "cairn/manifest/names.h"
#include "cairn/save/save.h"
#include "cairn/save/save_plan.h"
#include "cairn/tree/structure.h"

namespace {

cairn::Tree many_leaves(int count) {
  const cairn::Array leaf = *cairn::Array::zeros(cairn::DType::kFloat32, {16, 8});
  cairn::Tree layers = cairn::Tree::dict();
  for (int i = 0; i < count / 10; ++i) {
    cairn::Tree::Children children;
    for (int j = 0; j < 10; ++j) children.emplace_back("kernel" + std::to_string(j), leaf);
    layers.children().emplace_back("layer" + std::to_string(1000000 + i),
                                   cairn::Tree::dict(std::move(children)));
  }
  return layers;
}

int plan(int count) {
  const cairn::Tree tree = many_leaves(count);
  const auto leaves = cairn::flatten(tree);
  const auto structure = cairn::structure_to_json(tree);
  cairn::PlanOptions options;
  options.layout = cairn::kZarr2Layout;
  const auto arrays = leaves ? cairn::plan_arrays(*leaves, options) : leaves.error();
  if (!arrays || !structure) return 1;
  std::vector<cairn::ManifestArray> stored;
  for (const cairn::PlannedArray& array : *arrays)
    stored.push_back({array.path, array.stored, {}, {}, {}});
  std::vector<cairn::WantedBox> wanted;
  for (const cairn::ManifestArray& array : stored)
    wanted.push_back({&array, cairn::Box::whole(array.stored.shape)});
  const cairn::LoadPlan plan = cairn::plan_load(wanted, true);
  std::printf("%zu leaves, %zu reads\n", arrays->size(), plan.jobs.size());
  return 0;
}

int save(int count, const std::string& path) {
  cairn::Runtime runtime;
  const auto saved = cairn::save_tree(many_leaves(count), path, {}, runtime, "model");
  if (!saved) std::fprintf(stderr, "%s\n", saved.error().to_string().c_str());
  return saved ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 2 ? argv[1] : "";
  if (verb == "plan") return plan(std::atoi(argv[2]));
  if (verb == "save" && argc > 3) return save(std::atoi(argv[2]), argv[3]);
  std::fputs("usage: leaves plan N | leaves save N DIR\n", stderr);
  return 2;
}
