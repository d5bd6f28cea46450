// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/checked.h"
#include "cairn/base/human.h"
#include "cairn/base/uri.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/plan_drawing.h"
#include "cairn/cli/plan_svg.h"
#include "cairn/cli/terminal.h"
#include "cairn/inspect/find_leaf.h"
#include "cairn/storage/open.h"

namespace cairn::cli {

namespace {

constexpr std::size_t kMostRows = 64;
constexpr std::size_t kRowsOfMany = 32;

Result<Mesh> mesh_of(const PlanArgs& args) {
  CAIRN_TRY_ASSIGN(auto axes, parse_mesh_axes(args.mesh));
  Index devices = 1;
  for (const MeshAxis& axis : axes) {
    const auto product = checked_mul(devices, axis.size);
    // Mesh says what is wrong with such sizes.
    devices = product && *product <= static_cast<Index>(Mesh::kMaxDevices) ? *product : 1;
  }
  return Mesh::over_ranks(std::move(axes), args.ranks.value_or(static_cast<int>(devices)));
}

Result<std::optional<PartitionRules>> rules_of(const PlanArgs& args) {
  if (args.rules.empty()) return std::optional<PartitionRules>();
  CAIRN_TRY_ASSIGN(auto uri, parse_uri(args.rules));
  const auto [folder, name] = split_uri(std::move(uri));
  CAIRN_TRY_ASSIGN(const auto store, storage::open_store(folder));
  CAIRN_TRY_ASSIGN(const Buffer text,
                   storage::read_all(*store, name, PartitionRules::kMaxFileBytes));
  CAIRN_TRY_ASSIGN(auto rules,
                   PartitionRules::parse(as_text(text.bytes())).in([&] { return args.rules; }));
  return std::optional(std::move(rules));
}

Result<void> write_file(const std::string& path, std::string_view text) {
  CAIRN_TRY_ASSIGN(auto uri, parse_uri(path));
  const auto [folder, name] = split_uri(std::move(uri));
  CAIRN_TRY_ASSIGN(const auto store, storage::open_store(folder));
  CAIRN_TRY(store->put(name, as_bytes(text)));
  return {};
}

/// The leaf that is drawn, with its readers.
struct Drawn {
  const PlacedArray* array = nullptr;
  LeafReaders readers;
  Drawing drawing;
};

Result<const PlacedArray*> choose_leaf(const Checkpoint& checkpoint, const PlannedLoad& load,
                                       const PlanArgs& args) {
  if (args.leaf.empty()) return most_telling_array(load);
  CAIRN_TRY_ASSIGN(const FoundLeaf found, find_leaf(checkpoint, args.leaf, args.prefix));
  const auto same = [&](const PlacedArray& array) {
    return array.prefix == found.prefix && array.index == found.array;
  };
  const auto array = std::ranges::find_if(load.arrays(), same);
  if (array != load.arrays().end()) return &*array;
  return Error(Code::kInvalidArgument, "plan/not-an-array",
               fmt::format("'{}' is a {}, not an array", args.leaf, type_name(*found.value)));
}

/// Nothing where no leaf was asked for and none can be drawn.
Result<std::optional<Drawn>> draw(const Checkpoint& checkpoint, const PlannedLoad& load,
                                  const PlanArgs& args) {
  CAIRN_TRY_ASSIGN(const PlacedArray* array, choose_leaf(checkpoint, load, args));
  const bool asked = !args.leaf.empty() || !args.svg.empty();
  if (array == nullptr) {
    if (!asked) return std::optional<Drawn>();
    return Error(Code::kInvalidArgument, "plan/nothing-to-draw",
                 "there is no array with any element");
  }
  auto readers = leaf_readers(*array);
  if (!readers && !asked) return std::optional<Drawn>();
  CAIRN_TRY(readers);
  Drawing drawing = make_drawing(*array, *readers, load.ranks());
  if (!args.svg.empty()) {
    CAIRN_TRY_ASSIGN(const std::string svg, draw_svg(drawing));
    CAIRN_TRY(write_file(args.svg, svg));
  }
  return std::optional(Drawn{array, *std::move(readers), std::move(drawing)});
}

std::string times(const RankReads& reads) {
  const auto amplification = reads.amplification();
  return amplification ? fmt::format("{:.2f}", *amplification) : "-";
}

std::vector<std::string> ranks_table(const PlannedReads& reads) {
  const bool told = std::ranges::any_of(reads.ranks, [](const RankReads& r) { return r.told > 0; });
  const std::size_t shown = reads.ranks.size() > kMostRows ? kRowsOfMany : reads.ranks.size();
  std::vector<std::vector<std::string>> rows{
      {"RANK", "ARRAYS", "NEEDED", "READ", "AMPLIFICATION", "REQUESTS"}};
  if (told) rows[0].emplace_back("FROM RANK 0");
  for (std::size_t rank = 0; rank < shown; ++rank) {
    const RankReads& one = reads.ranks[rank];
    rows.push_back({std::to_string(rank), std::to_string(one.arrays), format_bytes(one.needed),
                    format_bytes(one.read), times(one), std::to_string(one.requests)});
    if (told) rows.back().push_back(format_bytes(one.told));
  }
  std::vector<std::string> lines = table(std::move(rows), {0, 1, 2, 3, 4, 5, 6});
  if (shown < reads.ranks.size())
    lines.push_back(fmt::format("... {} more ranks; --json lists all", reads.ranks.size() - shown));
  return lines;
}

void print(const PlanArgs& args, const PlannedReads& reads, const std::optional<Drawn>& drawn,
           const Terminal& terminal) {
  terminal.lines(ranks_table(reads));
  terminal.line(
      fmt::format("{} onto {} of {}: {} needed, {} read ({} times), {}; rank {} reads most, {}",
                  counted(reads.total.arrays, "array"), counted(reads.ranks.size(), "rank"),
                  args.mesh, format_bytes(reads.total.needed), format_bytes(reads.total.read),
                  times(reads.total), counted(reads.total.requests, "request"), reads.largest,
                  format_bytes(reads.ranks[static_cast<std::size_t>(reads.largest)].read)));
  if (drawn) {
    terminal.line("");
    terminal.lines(draw_text(drawn->drawing));
  }
  if (!args.svg.empty()) terminal.line("wrote " + args.svg);
}

Json to_json(const RankReads& reads) {
  return Json::Object{{"arrays", reads.arrays},
                      {"needed_bytes", reads.needed},
                      {"told_bytes", reads.told},
                      {"read_bytes", reads.read},
                      {"amplification", or_null(reads.amplification())},
                      {"requests", reads.requests}};
}

Json to_json(const Shape& shape) { return Json::Array(shape.begin(), shape.end()); }

Json to_json(const PlacedArray& array) {
  const KeyPath& path = array.array().path;
  const NamedSharding* named = array.sharding.named();
  return Json::Object{{"key", path.text()},
                      {"prefix", array.prefix->name},
                      {"path", Json::Array(path.parts().begin(), path.parts().end())},
                      {"dtype", dtype_name(array.array().stored.dtype)},
                      {"shape", to_json(array.array().stored.shape)},
                      {"bytes", array.bytes()},
                      {"name", array.prefix->names[array.index]},
                      {"spec", named != nullptr ? named->spec().to_json() : Json()},
                      {"told_by_rank_0", array.told}};
}

Json to_json(const Drawn& drawn) {
  Json::Array cells;
  for (std::size_t cell = 0; cell < drawn.readers.readers.size(); ++cell) {
    const std::vector<int>& readers = drawn.readers.readers[cell];
    cells.emplace_back(Json::Object{{"at", to_json(drawn.readers.position(cell))},
                                    {"ranks", Json::Array(readers.begin(), readers.end())}});
  }
  Json::Array held;
  for (const LeafReaders::Part& part : drawn.readers.held) {
    held.emplace_back(Json::Object{{"begin", to_json(part.box.begin)},
                                   {"end", to_json(part.box.end)},
                                   {"ranks", Json::Array(part.ranks->begin(), part.ranks->end())}});
  }
  return Json::Object{{"key", drawn.array->array().path.text()},
                      {"prefix", drawn.array->prefix->name},
                      {"cells_are", drawn.readers.parts ? "parts" : "chunks"},
                      {"cell_shape", to_json(drawn.readers.cell_shape)},
                      {"grid", to_json(drawn.readers.grid)},
                      {"cells", std::move(cells)},
                      {"held", std::move(held)}};
}

Json document(const Checkpoint& checkpoint, const Mesh& mesh, const PlannedLoad& load,
              const PlannedReads& reads) {
  Json::Array axes;
  for (const MeshAxis& axis : mesh.axes())
    axes.emplace_back(Json::Object{{"name", axis.name}, {"size", axis.size}});
  Json::Array ranks;
  for (std::size_t rank = 0; rank < reads.ranks.size(); ++rank) {
    Json one = to_json(reads.ranks[rank]);
    one.set("rank", std::uint64_t{rank});
    ranks.push_back(std::move(one));
  }
  Json::Array leaves;
  for (const PlacedArray& array : load.arrays()) leaves.push_back(to_json(array));
  return Json::Object{{"path", checkpoint.path},       {"mesh", std::move(axes)},
                      {"ranks", std::move(ranks)},     {"totals", to_json(reads.total)},
                      {"largest_rank", reads.largest}, {"leaves", std::move(leaves)}};
}

Result<void> run(const PlanArgs& args, const Terminal& terminal, Runtime& runtime) {
  CAIRN_TRY_ASSIGN(const Mesh mesh, mesh_of(args));
  CAIRN_TRY_ASSIGN(const auto rules, rules_of(args));
  CAIRN_TRY_ASSIGN(const Checkpoint checkpoint, open_argument(args.path, terminal, runtime));
  CAIRN_TRY_ASSIGN(const auto load, PlannedLoad::make(checkpoint, mesh,
                                                      {.prefix = args.prefix,
                                                       .partition_rules = rules ? &*rules : nullptr,
                                                       .check = args.check}));
  CAIRN_TRY_ASSIGN(const auto drawn, draw(checkpoint, load, args));
  CAIRN_TRY_ASSIGN(const PlannedReads reads, load.reads(runtime));
  if (!terminal.json()) {
    print(args, reads, drawn, terminal);
    return {};
  }
  Json json = document(checkpoint, mesh, load, reads);
  json.set("drawing", drawn ? to_json(*drawn) : Json());
  terminal.document(json);
  return {};
}

}  // namespace

int plan_command(const PlanArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto done = run(args, terminal, runtime);
  return done ? kGood : terminal.fail(done.error());
}

}  // namespace cairn::cli
