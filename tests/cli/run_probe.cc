// SPDX-License-Identifier: Apache-2.0
// A job that owns a run: cairn_run_probe RUN. Each line on standard input is the next step; the
// answer is "saved" if that step was, once it is committed, else "went on".
#include <iostream>
#include <string>

#include "cairn/manager/checkpointer.h"

int main(int argc, char** argv) {
  using namespace cairn;
  if (argc != 2) return 2;
  const auto runtime = std::make_shared<Runtime>();
  const auto run = Checkpointer::make({.base_path = argv[1]}, runtime);
  if (!run) return 1;
  std::int64_t step = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const Tree state = Tree::dict({{"step", Value(Integer(++step))}});
    const auto saving = (*run)->on_step(step, state, {.force = line == "force"});
    if (!saving || !(*run)->wait_until_finished()) return 1;
    std::cout << (*saving ? "saved" : "went on") << std::endl;
  }
  return 0;
}
