// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cairn/array/cast.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/npy.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"
#include "cairn/format/chunk_codec.h"
#include "cairn/inspect/find_leaf.h"
#include "cairn/layout/open_checkpoint.h"
#include "cairn/load/load.h"
#include "cairn/load/read_boxes.h"

namespace cairn::cli {

namespace {

/// Rows of the last dimension, one a line, with blank lines between matrices; long arrays are cut.
class ValuePrinter {
 public:
  ValuePrinter(const Array& array, bool all) : array_(array), all_(all) {}

  std::string print() {
    const std::uint64_t row =
        array_.shape().empty() ? 1 : static_cast<std::uint64_t>(array_.shape().back());
    const std::uint64_t elements = array_.elements();
    if (elements == 0) return "(no elements)\n";
    const std::uint64_t rows = elements / row;
    for (std::uint64_t r = 0; r < rows; ++r) {
      if (!all_ && rows > kMaxRows && r == kMaxRows / 2) {
        text_ += fmt::format("... {} rows ...\n", rows - kMaxRows);
        r = rows - kMaxRows / 2;
      }
      add_row(r * row, row);
    }
    return std::move(text_);
  }

 private:
  static constexpr std::uint64_t kMaxRows = 24;
  static constexpr std::uint64_t kMaxColumns = 12;

  void add_row(std::uint64_t first, std::uint64_t count) {
    const std::size_t item = item_size(array_.dtype());
    for (std::uint64_t c = 0; c < count; ++c) {
      if (!all_ && count > kMaxColumns && c == kMaxColumns / 2) {
        text_ += " ...";
        c = count - kMaxColumns / 2;
      }
      text_ +=
          (c == 0 ? "" : " ") + element_as_text(array_.dtype(), array_.data() + (first + c) * item);
    }
    text_ += "\n";
  }

  const Array& array_;
  const bool all_;
  std::string text_;
};

/// The elements as the format holds them: packed where it packs.
Result<std::string> raw_bytes(const Array& array, const format::StoredArray& stored) {
  if (!stored.packed) return std::string(as_text(array.bytes()));
  format::StoredArray piece;
  piece.dtype = stored.dtype;
  piece.packed = true;
  piece.shape = piece.chunk_shape = {static_cast<Index>(array.elements())};
  if (array.elements() == 0) return std::string();
  CAIRN_TRY_ASSIGN(const auto codec, format::ChunkCodec::make(piece));
  CAIRN_TRY_ASSIGN(const Buffer bytes, codec.encode(array.bytes()));
  return std::string(as_text(bytes.bytes()));
}

Json elements_to_json(const Array& array) {
  Json::Array values;
  const std::size_t item = item_size(array.dtype());
  const std::uint64_t elements = array.elements();
  for (std::uint64_t i = 0; i < elements; ++i) {
    const std::string text = element_as_text(array.dtype(), array.data() + i * item);
    const auto parsed = parse_json(text);
    values.push_back(parsed ? *parsed : Json(text));
  }
  return values;
}

Result<void> print_array(const FoundLeaf& target, const CatArgs& args, const Terminal& terminal,
                         Runtime& runtime) {
  const format::StoredArray& stored = target.prefix->manifest.arrays[*target.array].stored;
  CAIRN_TRY_ASSIGN(const Box box, parse_slice(args.slice, stored.shape));
  CAIRN_TRY_ASSIGN(const Array array, load_box(*target.prefix, *target.array, box, runtime));
  if (args.raw) {
    CAIRN_TRY_ASSIGN(const std::string bytes, raw_bytes(array, stored));
    terminal.raw(bytes);
  } else if (args.npy) {
    terminal.raw(npy_header(array.dtype(), array.shape()));
    terminal.raw(as_text(array.bytes()));
  } else if (terminal.json()) {
    Json json(target.json());
    json.set("dtype", dtype_name(array.dtype()));
    json.set("shape", Json::Array(array.shape().begin(), array.shape().end()));
    json.set("bytes", array.nbytes());
    json.set("name", target.prefix->names[*target.array]);
    json.set("values", elements_to_json(array));
    terminal.document(json);
  } else {
    terminal.note(fmt::format("{} {}", dtype_name(array.dtype()), to_string(array.shape())));
    terminal.raw(ValuePrinter(array, args.all).print());
  }
  return {};
}

Result<void> print_value(const FoundLeaf& target, const CatArgs& args, const Terminal& terminal) {
  if (args.raw || args.npy || !args.slice.empty()) {
    return Error(Code::kInvalidArgument, "cat/not-an-array",
                 fmt::format("'{}' is a {}, not an array", args.key, type_name(*target.value)));
  }
  if (!terminal.json()) {
    terminal.line(value_to_text(*target.value));
    return {};
  }
  CAIRN_TRY_ASSIGN(auto value, value_to_json(*target.value));
  Json json(target.json());
  json.set("value", std::move(value));
  terminal.document(json);
  return {};
}

Result<void> run(const CatArgs& args, const Terminal& terminal, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_argument(args.path, terminal, runtime));
  return read_settled(checkpoint, runtime, [&](const Checkpoint& opened) -> Result<void> {
    CAIRN_TRY_ASSIGN(const FoundLeaf target, find_leaf(opened, args.key, args.prefix));
    return target.value != nullptr ? print_value(target, args, terminal)
                                   : print_array(target, args, terminal, runtime);
  });
}

}  // namespace

int cat_command(const CatArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto done = run(args, terminal, runtime);
  return done ? kGood : terminal.fail(done.error());
}

}  // namespace cairn::cli
