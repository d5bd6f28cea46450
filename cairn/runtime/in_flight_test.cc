// SPDX-License-Identifier: Apache-2.0
#include "cairn/runtime/in_flight.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

TEST(InFlight, IsAtOnePlaceHoweverThatIsWritten) {
  const testing::TempDir dir;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(dir / ".");
  const std::string whole = std::filesystem::current_path() / "new/run";
  for (const std::string& path : {std::string("new/run"), std::string("./new/x/../run/"), whole}) {
    const InFlight save(path, 0);
    EXPECT_EQ(places_in_flight(), std::vector{whole}) << path;
  }
  EXPECT_EQ(places_in_flight(), std::vector<std::string>());
  std::filesystem::current_path(before);
}

}  // namespace
}  // namespace cairn
