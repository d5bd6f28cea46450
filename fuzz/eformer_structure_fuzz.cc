// SPDX-License-Identifier: Apache-2.0
// Whatever is accepted fits itself: a structure has as many arrays as are named, and its leaves are
// its values; whatever pickle is accepted is walked to its end. A text that is no JSON object is
// taken for the pickle of the containers, so that fuzzing gets behind the base64.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cairn/base/base64.h"
#include "cairn/base/pickle.h"
#include "cairn/manifest/eformer_structure.h"
#include "cairn/tree/structure.h"

namespace {

using cairn::Json;

void check(const cairn::Result<cairn::EformerStructure>& made) {
  if (!made) {
    if (made.error().code() != cairn::Code::kCorrupt) __builtin_trap();
    return;
  }
  if (made->structure.is_null()) return;
  const auto leaves = cairn::structure_leaves(made->structure);
  if (!leaves || leaves->arrays != made->paths || leaves->values.size() != made->values.size())
    __builtin_trap();
  if (made->arrays.size() != made->paths.size()) __builtin_trap();
}

/// Two arrays, a number and the containers that the pickle describes.
std::string file_with(std::string_view pickle) {
  const std::string value = cairn::encode_base64(cairn::as_bytes("\x80\x04K\x02."));
  const std::string text = cairn::encode_base64(cairn::as_bytes(pickle));
  return cairn::dump_json(Json::Object{
      {"format", "pytree-structure"},
      {"prefix", "m"},
      {"treedef_b64", text},
      {"leaf_keys_full", Json::Array{"m.a.0", "m.a.1", "m.b"}},
      {"arr_mask", Json::Array{true, false, true}},
      {"array_relpaths", Json::Array{"m/a/0", "m/b"}},
      {"nonarray_payload", Json::Object{{"1", value}}},
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    check(cairn::parse_eformer_structure(text, "m"));
    return 0;
  }
  cairn::Pickle::parse(text).ignore_error("it is only looked at");
  check(cairn::parse_eformer_structure(file_with(text), "m"));
  return 0;
}
