// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/open.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/memory/memory_destination.h"
#include "cairn/commit/memory/memory_run_directory.h"
#include "cairn/commit/posix/posix_destination.h"
#include "cairn/commit/posix/posix_run_directory.h"

namespace cairn {

namespace {

using Opened = Result<std::unique_ptr<Destination>>;
using OpenedRun = Result<std::unique_ptr<RunDirectory>>;

Opened open_path(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(auto path, uri.local());
  return open_posix_destination(runtime.file_system(), runtime.clock(), std::move(path));
}

Opened open_memory(const Uri& uri, Runtime& runtime) {
  return open_memory_destination(uri, runtime.clock());
}

OpenedRun open_path_of_run(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(auto path, uri.local());
  return open_posix_run(runtime.file_system(), runtime.clock(), std::move(path));
}

OpenedRun open_run_in_memory(const Uri& uri, Runtime& runtime) {
  return open_memory_run(uri, runtime.clock());
}

struct Row {
  std::string_view scheme;
  Opened (*open)(const Uri&, Runtime&);
  OpenedRun (*open_run)(const Uri&, Runtime&);
};

constexpr auto kRows = std::to_array<Row>({
    {"file", &open_path, &open_path_of_run},
    {"memory", &open_memory, &open_run_in_memory},
});

const Row* row_of(const Uri& uri) {
  const auto* row = std::ranges::find(kRows, std::string_view(uri.scheme), &Row::scheme);
  return row != kRows.end() ? row : nullptr;
}

}  // namespace

Result<void> check_destination(const Uri& uri) {
  if (row_of(uri) != nullptr) return {};
  return Error(
      Code::kUnimplemented, "save/store-unsupported",
      fmt::format("checkpoints cannot be saved to {}:// yet; use a directory", uri.scheme));
}

Opened open_destination(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY(check_destination(uri));
  return row_of(uri)->open(uri, runtime);
}

Opened open_destination(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  if (row_of(uri) == nullptr) return uri.local().error();
  return open_destination(uri, runtime);
}

OpenedRun open_run(const std::string& path, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Uri uri, parse_uri(path));
  if (row_of(uri) == nullptr) return uri.local().error();
  return row_of(uri)->open_run(uri, runtime);
}

}  // namespace cairn
