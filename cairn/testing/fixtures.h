// SPDX-License-Identifier: Apache-2.0
// Files that tests read: checkpoints that other systems wrote, which lie beside the project, not in
// it, and the project's own.
#pragma once

#include <optional>
#include <string>

namespace cairn::testing {

/// Path of a file or folder of the project, "tests/golden".
std::string source_path(const std::string& name);

/// The folder of a fixture, "<...>/shared/fixtures/<name>"; nothing on a clone that has none beside
/// it. With CI=true in the environment their absence is a test failure.
std::optional<std::string> fixture(const std::string& name);

}  // namespace cairn::testing

/// Skips the test with one clear line where the fixtures are not there; otherwise declares
/// `variable`.
#define CAIRN_FIXTURE_OR_SKIP(variable, name)                                              \
  const auto variable##_found = ::cairn::testing::fixture(name);                           \
  if (!variable##_found) GTEST_SKIP() << "fixtures are not beside this clone (../shared)"; \
  const std::string& variable = *variable##_found
