// SPDX-License-Identifier: Apache-2.0
#include "cairn/storage/open.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cairn/storage/local/local_store.h"
#include "cairn/storage/local/posix.h"
#include "cairn/storage/memory/memory_store.h"

namespace cairn::storage {
namespace {

using Opened = Result<std::unique_ptr<Store>>;

Opened open_file(const Uri& uri, const OpenStoreOptions& options) {
  FileSystem& fs = options.file_system != nullptr ? *options.file_system : posix_file_system();
  return open_local_store(fs, uri.path, {.create_root = options.create});
}

Opened open_memory(const Uri& uri, const OpenStoreOptions&) {
  return open_memory_store(uri.authority, uri.path);
}

Opened refuse(const Uri& uri, const OpenStoreOptions&) {
  return Error(Code::kUnimplemented, "storage/not-built",
               fmt::format("this build has no {}:// storage; use a path on a mounted file system",
                           uri.scheme))
      .in(uri.to_string());
}

struct Scheme {
  const char* scheme;
  Opened (*open)(const Uri&, const OpenStoreOptions&);
};

constexpr auto kSchemes = std::to_array<Scheme>({
    {"file", &open_file},
    {"memory", &open_memory},
    {"gs", &refuse},
    {"s3", &refuse},
});

}  // namespace

Opened open_store(const Uri& uri, const OpenStoreOptions& options) {
  const auto* row = std::ranges::find(kSchemes, std::string_view(uri.scheme),
                                      [](const Scheme& r) { return std::string_view(r.scheme); });
  if (row != kSchemes.end()) return row->open(uri, options);
  return Error(Code::kUnimplemented, "storage/unknown-scheme",
               fmt::format("no storage for '{}://'; there are: file, memory", uri.scheme))
      .in(uri.to_string());
}

}  // namespace cairn::storage
