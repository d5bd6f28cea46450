// SPDX-License-Identifier: Apache-2.0
#include "cairn/layout/open.h"

#include <utility>

#include "cairn/layout/committed.h"
#include "cairn/layout/foreign.h"
#include "cairn/layout/safetensors_opener.h"
#include "cairn/layout/strangers.h"
#include "cairn/manifest/names.h"

namespace cairn {

namespace {

using Opener = Result<std::optional<Checkpoint>> (*)(const DirectoryView&, Runtime&);

constexpr Opener kLayouts[] = {
    open_committed, open_single_array, open_eformer, open_safetensors, open_loose_arrays,
};

}  // namespace

Result<Checkpoint> open_layout(const DirectoryView& view, Runtime& runtime) {
  for (const Opener open : kLayouts) {
    CAIRN_TRY_ASSIGN(auto found, open(view, runtime));
    if (!found) continue;
    found->path = view.path;
    if (view.destination && found->description_file.empty())
      found->description_file = kCheckpointMetadataName;
    return *std::move(found);
  }
  if (auto stranger = recognise_directory(view.files)) return *std::move(stranger);
  return Error(
      Code::kFailedPrecondition, "checkpoint/not-a-checkpoint",
      "there is no checkpoint here: no cairn.json, tensorstore_index.json, .safetensors file or "
      ".zarray was found");
}

}  // namespace cairn
