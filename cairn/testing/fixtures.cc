// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/fixtures.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace cairn::testing {

std::string source_path(const std::string& name) { return CAIRN_SOURCE_DIR "/" + name; }

std::optional<std::string> fixture(const std::string& name) {
  const char* given = std::getenv("CAIRN_FIXTURES");
  const std::filesystem::path root = given != nullptr ? given : source_path("../shared/fixtures");
  std::error_code error;
  if (std::filesystem::is_directory(root / name, error)) return (root / name).string();
  const char* ci = std::getenv("CI");
  if (ci != nullptr && std::string(ci) == "true") {
    ADD_FAILURE() << "no fixture " << name << " under " << root.string();
  }
  return std::nullopt;
}

}  // namespace cairn::testing
