// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/run_places.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "cairn/base/uri.h"

namespace cairn {

namespace {

/// Without links, dots and a slash at its end.
std::filesystem::path real_path(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  const auto real = std::filesystem::weakly_canonical(whole, error);
  const auto plain = error ? whole.lexically_normal() : real;
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_url(const std::string& path) {
  const auto uri = parse_uri(path);
  return uri && uri->scheme != "file";
}

/// Its name in the directory `base`, however both are written; nothing: it leads elsewhere.
std::optional<std::string> name_below(const std::string& base, const std::string& path) {
  if (is_url(base) || is_url(path)) {
    if (!is_of_run(base, path)) return std::nullopt;
    return path.substr(base.size() + 1);
  }
  const auto name = real_path(path).lexically_relative(real_path(base));
  if (name.empty() || name == "." || *name.begin() == "..") return std::nullopt;
  return name.string();
}

}  // namespace

Result<std::string> place_of(const std::string& base, const std::string& destination) {
  if (is_url(destination)) return destination;
  if (destination.starts_with('/')) {
    const auto name = name_below(base, destination);
    if (name) return base + "/" + *name;
    return std::filesystem::path(destination).lexically_normal().string();
  }
  if (!is_safe_relative_path(destination)) {
    return Error(Code::kInvalidArgument, "checkpointer/destination",
                 fmt::format("'{}' is no name of a checkpoint in {}; give a relative path, or an "
                             "absolute one",
                             destination, base));
  }
  return base + "/" + destination;
}

bool leads_into_run(const std::string& base, const std::string& path) {
  return name_below(base, path).has_value();
}

bool is_of_run(const std::string& base, const std::string& path) {
  return path.starts_with(base + "/");
}

}  // namespace cairn
