// SPDX-License-Identifier: Apache-2.0
// Checkpoints that other systems wrote. They lie beside the project, not in it.
#pragma once

#include <optional>
#include <string>

namespace cairn::testing {

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
