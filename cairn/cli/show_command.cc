// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cairn/base/human.h"
#include "cairn/cli/commands.h"
#include "cairn/cli/exit_codes.h"
#include "cairn/cli/open_argument.h"
#include "cairn/cli/terminal.h"

namespace cairn::cli {

namespace {

std::uint64_t element_bytes(const ManifestArray& array) {
  return Box::whole(array.stored.shape).elements() * item_size(array.stored.dtype);
}

std::uint64_t stored_bytes(const ManifestArray& array) {
  const auto& lengths = array.sums.lengths();
  return std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
}

struct Totals {
  std::uint64_t arrays = 0;
  std::uint64_t values = 0;
  std::uint64_t bytes = 0;
  std::uint64_t stored = 0;

  std::string text() const {
    return fmt::format("{}, {}, {}", counted(arrays, "array"), counted(values, "value"),
                       format_bytes(bytes));
  }
};

Totals totals_of(const std::vector<const OpenedPrefix*>& prefixes) {
  Totals totals;
  for (const OpenedPrefix* prefix : prefixes) {
    totals.arrays += prefix->manifest.arrays.size();
    totals.values += prefix->values.size();
    for (const ManifestArray& array : prefix->manifest.arrays) {
      totals.bytes += element_bytes(array);
      totals.stored += stored_bytes(array);
    }
  }
  return totals;
}

Json parts_of(const KeyPath& path) { return Json::Array(path.parts().begin(), path.parts().end()); }

Json array_to_json(const OpenedPrefix& prefix, std::size_t i) {
  const ManifestArray& array = prefix.manifest.arrays[i];
  Json json(
      Json::Object{{"key", array.path.text()},
                   {"prefix", prefix.name},
                   {"path", parts_of(array.path)},
                   {"dtype", dtype_name(array.stored.dtype)},
                   {"shape", Json::Array(array.stored.shape.begin(), array.stored.shape.end())},
                   {"bytes", element_bytes(array)},
                   {"name", prefix.names[i]},
                   {"chunks", array.stored.chunk_count()},
                   {"chunk_shape",
                    Json::Array(array.stored.chunk_shape.begin(), array.stored.chunk_shape.end())},
                   {"codec", array.stored.codec.name()}});
  if (!array.sums.empty()) json.set("stored_bytes", stored_bytes(array));
  if (array.cast_from) json.set("cast_from", dtype_name(*array.cast_from));
  if (!array.sha256.empty()) json.set("sha256", array.sha256);
  if (array.spec) json.set("spec", array.spec->to_json());
  return json;
}

int show_json(const Checkpoint& checkpoint, const std::vector<const OpenedPrefix*>& prefixes,
              const Terminal& terminal) {
  Json::Array leaves;
  Json::Array names;
  Json step;
  for (const OpenedPrefix* prefix : prefixes) {
    names.emplace_back(prefix->name);
    if (prefix->manifest.step) step = *prefix->manifest.step;
    for (std::size_t i = 0; i < prefix->manifest.arrays.size(); ++i)
      leaves.push_back(array_to_json(*prefix, i));
    for (const auto& [path, value] : prefix->values) {
      const auto json = value_to_json(value);
      leaves.emplace_back(Json::Object{{"key", path.text()},
                                       {"prefix", prefix->name},
                                       {"path", parts_of(path)},
                                       {"value", json ? *json : Json()}});
    }
  }
  const Totals totals = totals_of(prefixes);
  terminal.document(
      Json::Object{{"path", checkpoint.path},
                   {"kind", checkpoint.kind},
                   {"step", std::move(step)},
                   {"prefixes", std::move(names)},
                   {"leaves", std::move(leaves)},
                   {"totals", Json::Object{{"arrays", totals.arrays},
                                           {"values", totals.values},
                                           {"bytes", totals.bytes},
                                           {"stored_bytes", totals.stored}}},
                   {"notes", Json::Array(checkpoint.notes.begin(), checkpoint.notes.end())}});
  return kGood;
}

/// A leaf on its way into the picture of the tree.
struct Item {
  const KeyPath* path;
  const ManifestArray* array;  // null: a value
  const Value* value;
};

/// Part by part; numbers, which are the indices of lists, by their value.
bool comes_before(const Item& a, const Item& b) {
  const auto is_number = [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
  };
  const auto part_before = [&](const std::string& x, const std::string& y) {
    if (is_number(x) && is_number(y) && x.size() != y.size()) return x.size() < y.size();
    return x < y;
  };
  return std::ranges::lexicographical_compare(a.path->parts(), b.path->parts(), part_before);
}

class Picture {
 public:
  explicit Picture(std::optional<int> depth) : depth_(depth.value_or(1 << 20)) {}

  std::vector<std::string> draw(const OpenedPrefix& prefix) {
    std::vector<Item> items;
    items.reserve(prefix.manifest.arrays.size() + prefix.values.size());
    for (const ManifestArray& array : prefix.manifest.arrays)
      items.push_back({&array.path, &array, nullptr});
    for (const auto& [path, value] : prefix.values) items.push_back({&path, nullptr, &value});
    // Arrays come in the order of the tree; values are put among them.
    if (!prefix.values.empty()) {
      std::ranges::sort(items, comes_before);
    }
    add(items, 0);
    return table(std::move(rows_), {3, 4});
  }

 private:
  // Items that share their first `level` parts.
  void add(std::span<const Item> items, std::size_t level) {
    for (std::size_t i = 0; i < items.size();) {
      const auto& parts = items[i].path->parts();
      if (parts.size() <= level) {
        add_leaf(items[i++], level);
        continue;
      }
      std::size_t end = i + 1;
      while (end < items.size() && items[end].path->parts().size() > level &&
             items[end].path->parts()[level] == parts[level]) {
        ++end;
      }
      const auto group = items.subspan(i, end - i);
      if (group.size() == 1 && parts.size() == level + 1) {
        add_leaf(group[0], level);
      } else if (static_cast<int>(level) + 1 >= depth_) {
        add_folded(group, level);
      } else {
        rows_.push_back({indent(level) + parts[level]});
        add(group, level + 1);
      }
      i = end;
    }
  }

  static std::string indent(std::size_t level) { return std::string(2 * (level + 1), ' '); }

  static std::string name_at(const Item& item, std::size_t level) {
    return item.path->parts().size() > level ? item.path->parts()[level] : "(the tree itself)";
  }

  void add_leaf(const Item& item, std::size_t level) {
    const std::string name = indent(level) + name_at(item, level);
    if (item.array == nullptr) {
      rows_.push_back(
          {name, std::string(type_name(*item.value)), cut(value_to_text(*item.value), 60)});
      return;
    }
    const format::StoredArray& stored = item.array->stored;
    rows_.push_back({name, std::string(dtype_name(stored.dtype)), to_string(stored.shape),
                     format_bytes(element_bytes(*item.array)),
                     stored.one_object ? "" : counted(stored.chunk_count(), "chunk"),
                     stored.codec.is_raw() ? "" : stored.codec.name(),
                     item.array->spec ? item.array->spec->to_string() : ""});
  }

  void add_folded(std::span<const Item> group, std::size_t level) {
    std::uint64_t bytes = 0;
    for (const Item& item : group) bytes += item.array != nullptr ? element_bytes(*item.array) : 0;
    rows_.push_back({indent(level) + name_at(group[0], level), "...",
                     fmt::format("{} {}", group.size(), group.size() == 1 ? "leaf" : "leaves"),
                     format_bytes(bytes)});
  }

  const int depth_;
  std::vector<std::vector<std::string>> rows_;
};

/// ", by 8 ranks on fsdp=4,tp=2"
std::string on_mesh(const Manifest& manifest) {
  std::string text;
  if (manifest.ranks > 1) text += fmt::format(", by {} ranks", manifest.ranks);
  for (const MeshAxis& axis : manifest.mesh)
    text += fmt::format("{}{}={}", &axis == &manifest.mesh.front() ? " on " : ",", axis.name,
                        axis.size);
  return text;
}

}  // namespace

int show_command(const ShowArgs& args, const Terminal& terminal, Runtime& runtime) {
  const auto checkpoint = open_argument(args.path, terminal, runtime);
  if (!checkpoint) return terminal.fail(checkpoint.error());
  const auto prefixes = select_prefixes(*checkpoint, args.prefix);
  if (!prefixes) return terminal.fail(prefixes.error());
  if (terminal.json()) return show_json(*checkpoint, *prefixes, terminal);
  terminal.line({{checkpoint->path, Style::kBold}, {"  "}, {checkpoint->kind, Style::kDim}});
  for (const OpenedPrefix* prefix : *prefixes) {
    const Totals totals = totals_of({prefix});
    const auto& step = prefix->manifest.step;
    terminal.line({{prefix->name.empty() ? "(no prefix)" : prefix->name, Style::kBold},
                   {"  " + totals.text()},
                   {step ? fmt::format(", step {}", *step) : ""},
                   {on_mesh(prefix->manifest)}});
    terminal.lines(Picture(args.depth).draw(*prefix));
  }
  const Totals totals = totals_of(*prefixes);
  std::string stored;
  if (totals.stored != 0) stored = fmt::format(", {} stored", format_bytes(totals.stored));
  terminal.line(fmt::format("{}{}", totals.text(), stored));
  for (const std::string& note : checkpoint->notes) terminal.line({{"note: " + note, Style::kDim}});
  return kGood;
}

}  // namespace cairn::cli
