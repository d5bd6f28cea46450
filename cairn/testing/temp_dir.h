// SPDX-License-Identifier: Apache-2.0
// A directory that goes away with its scope.
#pragma once

#include <string>

namespace cairn::testing {

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  /// "<path>/<below>"
  std::string operator/(const std::string& below) const { return path_ + "/" + below; }

 private:
  std::string path_;
};

/// Whole file as text; fails the test if it cannot be read.
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace cairn::testing
