// SPDX-License-Identifier: Apache-2.0
#include "cairn/tree/child_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "cairn/base/error_list.h"
#include "cairn/base/utf8.h"

namespace cairn {
namespace {

// Key paths from hostile files may be megabytes; messages are not.
constexpr std::size_t kMaxShownBytes = 300;

bool by_index(const Tree& node) {
  return node.kind() == TreeKind::kList || node.kind() == TreeKind::kTuple;
}

// Sorts copies that lie side by side: comparing through the children would miss the cache each
// time.
void sort_by_key(const Tree::Children& children, std::vector<std::size_t>& order) {
  const auto less = [](const Tree::Child& a, const Tree::Child& b) { return a.first < b.first; };
  if (std::is_sorted(children.begin(), children.end(), less)) return;
  using Entry = std::tuple<bool, std::int64_t, std::string_view, std::size_t>;  // as Key compares
  std::vector<Entry> entries;
  entries.reserve(children.size());
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Key& key = children[i].first;
    entries.push_back(key.is_number() ? Entry(false, key.number(), {}, i)
                                      : Entry(true, 0, key.text(), i));
  }
  std::sort(entries.begin(), entries.end());
  std::transform(entries.begin(), entries.end(), order.begin(),
                 [](const Entry& entry) { return std::get<std::size_t>(entry); });
}

Result<void> check_keys(const Tree& node, const std::vector<std::size_t>& order,
                        const Parts& above) {
  std::vector<const Key*> keys;
  keys.reserve(order.size());
  ErrorList errors;
  for (const std::size_t index : order) {
    const Key& key = node.children()[index].first;
    keys.push_back(&key);
    if (key.is_number()) continue;
    errors.take(check_part(key.text()).in([&above] { return "below " + place_name(above); }));
  }
  if (const auto found = find_collision(std::move(keys))) {
    errors.add(
        Error(Code::kInvalidArgument, "keypath/collision", collision_message(*found, above)));
  }
  return errors.result();
}

}  // namespace

Result<std::vector<std::size_t>> child_order(const Tree& node, const Parts& above) {
  const Tree::Children& children = node.children();
  if (!children.empty() && above.size() >= std::size_t{kMaxTreeDepth}) {
    return Error(Code::kInvalidArgument, "tree/too-deep",
                 fmt::format("the tree is more than {} levels deep", kMaxTreeDepth));
  }
  std::vector<std::size_t> order(children.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (by_index(node)) return order;
  if (node.kind() == TreeKind::kDict) sort_by_key(children, order);
  CAIRN_TRY(check_keys(node, order, above));
  return order;
}

std::string child_part(const Tree& node, std::size_t index) {
  return by_index(node) ? std::to_string(index) : node.children()[index].first.part();
}

std::string place_name(const Parts& parts) {
  if (parts.empty()) return "the root";
  const std::string text = KeyPath(parts).text();
  if (text.size() <= kMaxShownBytes) return fmt::format("'{}'", text);
  const std::string_view shown = std::string_view(text).substr(0, kMaxShownBytes);
  return fmt::format("'{}...'", shown.substr(0, valid_utf8_prefix(shown)));
}

std::string collision_message(const std::pair<Key, Key>& keys, const Parts& above) {
  Parts parts = above;
  parts.push_back(keys.first.part());
  const std::string name = place_name(parts);
  if (keys.first == keys.second) {
    return fmt::format("two children of {} have the key path {}; rename one", place_name(above),
                       name);
  }
  return fmt::format(
      "the integer key {} and the text key \"{}\" of {} have one key path, {}; rename one",
      keys.first.part(), keys.second.part(), place_name(above), name);
}

}  // namespace cairn
