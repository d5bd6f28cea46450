// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <string>

#include "cairn/base/json.h"

std::string stopped_time();
cairn::Result<cairn::Json> parse(const std::string& text);

int main() {
  const auto good = parse(R"({"step": 7})");
  const auto bad = parse("{");
  if (!good || bad) return 1;
  std::printf("%s %s %s\n", stopped_time().c_str(), cairn::dump_json(*good).c_str(),
              std::string(bad.error().reason()).c_str());
}
