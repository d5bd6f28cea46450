// SPDX-License-Identifier: Apache-2.0
#include "cairn/commit/open.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cairn/commit/memory/memory_destination.h"
#include "cairn/commit/posix/posix_destination.h"

namespace cairn {

namespace {

using Opened = Result<std::unique_ptr<Destination>>;

Opened open_path(const Uri& uri, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(auto path, uri.local());
  return open_posix_destination(runtime.file_system(), runtime.clock(), std::move(path));
}

Opened open_memory(const Uri& uri, Runtime& runtime) {
  return open_memory_destination(uri, runtime.clock());
}

struct Row {
  std::string_view scheme;
  Opened (*open)(const Uri&, Runtime&);
};

constexpr auto kRows = std::to_array<Row>({
    {"file", &open_path},
    {"memory", &open_memory},
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

}  // namespace cairn
