// SPDX-License-Identifier: Apache-2.0
// Boxes tile a whole exactly when the sum of their indicator functions is that of the whole: that
// is, when "boxes minus whole" is the zero function. A sum of weighted boxes is zero exactly when
// its difference along one dimension is: at each coordinate, the boxes that begin there minus the
// boxes that end there, as boxes of the other dimensions, must again sum to zero. Equal boxes
// cancel at every level, which in a grid are all those between neighbours.
#include "cairn/sharding/tiling.h"

#include <algorithm>
#include <compare>
#include <limits>

#include <fmt/format.h>

#include "cairn/base/checked.h"
#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

// Far above any real mesh; less than a second of work.
constexpr std::size_t kMaxTerms = std::size_t{1} << 22;
// Only for the message of an error: which two boxes overlap.
constexpr std::size_t kMaxPairs = std::size_t{1} << 22;

// A box with a weight, of which only the dimensions from some level on count.
struct Term {
  const Box* box;
  int weight;
};
using Terms = std::vector<Term>;

std::strong_ordering compare_from(std::size_t dim, const Box& a, const Box& b) {
  for (std::size_t i = dim; i < a.rank(); ++i) {
    if (const auto by_begin = a.begin[i] <=> b.begin[i]; by_begin != 0) return by_begin;
    if (const auto by_end = a.end[i] <=> b.end[i]; by_end != 0) return by_end;
  }
  return std::strong_ordering::equal;
}

// Sorts, adds up equal boxes, and drops those that cancel.
void combine(Terms& terms, std::size_t dim) {
  std::sort(terms.begin(), terms.end(),
            [dim](const Term& a, const Term& b) { return compare_from(dim, *a.box, *b.box) < 0; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size();) {
    Term sum = terms[i];
    for (++i; i < terms.size() && compare_from(dim, *sum.box, *terms[i].box) == 0; ++i) {
      sum.weight += terms[i].weight;
    }
    if (sum.weight != 0) terms[kept++] = sum;
  }
  terms.resize(kept);
}

bool all_alike(const Terms& terms, std::size_t dim) {
  const Box& first = *terms.front().box;
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
    return term.box->begin[dim] == first.begin[dim] && term.box->end[dim] == first.end[dim];
  });
}

struct Event {
  Index at;
  Term term;
};

std::vector<Event> events_along(const Terms& terms, std::size_t dim) {
  std::vector<Event> events;
  events.reserve(terms.size() * 2);
  for (const Term& term : terms) {
    events.push_back({term.box->begin[dim], term});
    events.push_back({term.box->end[dim], {term.box, -term.weight}});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.at < b.at; });
  return events;
}

enum class Sum { kZero, kOther, kUnknown };

// `left`: how many terms may still be looked at.
Sum sum_of(Terms terms, std::size_t dim, std::size_t& left) {
  if (terms.size() > left) return Sum::kUnknown;
  left -= terms.size();
  combine(terms, dim);
  if (terms.empty()) return Sum::kZero;
  if (dim == terms.front().box->rank()) return Sum::kOther;
  if (all_alike(terms, dim)) return sum_of(std::move(terms), dim + 1, left);
  const std::vector<Event> events = events_along(terms, dim);
  for (std::size_t i = 0; i < events.size();) {
    terms.clear();
    for (const Index at = events[i].at; i < events.size() && events[i].at == at; ++i) {
      terms.push_back(events[i].term);
    }
    if (const Sum sum = sum_of(terms, dim + 1, left); sum != Sum::kZero) return sum;
  }
  return Sum::kZero;
}

bool meet(const Box& a, const Box& b) {
  for (std::size_t i = 0; i < a.rank(); ++i) {
    if (a.begin[i] >= b.end[i] || b.begin[i] >= a.end[i]) return false;
  }
  return true;
}

// Boxes sorted by begin: only those that begin before this one ends can meet it.
Error overlap_error(const Terms& boxes) {
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const Box& a = *boxes[i].box;
    for (std::size_t j = i + 1; j < boxes.size() && pairs < kMaxPairs; ++j, ++pairs) {
      const Box& b = *boxes[j].box;
      if (b.begin.front() >= a.end.front()) break;
      if (!meet(a, b)) continue;
      return refuse("sharding/overlap",
                    fmt::format("boxes {} and {} overlap; boxes must be equal or disjoint",
                                a.to_string(), b.to_string()));
    }
  }
  return refuse("sharding/overlap", "some boxes overlap; boxes must be equal or disjoint");
}

// Saturates: more than can be counted is more than any whole.
std::uint64_t volume_of(const Terms& boxes) {
  std::uint64_t volume = 0;
  for (const Term& term : boxes) {
    const auto sum = checked_add(volume, term.box->elements());
    if (!sum) return std::numeric_limits<std::uint64_t>::max();
    volume = *sum;
  }
  return volume;
}

}  // namespace

Result<void> check_tiling(const Shape& shape, const std::vector<const Box*>& boxes) {
  Terms distinct;
  distinct.reserve(boxes.size() + 1);
  for (const Box* box : boxes) {
    if (!box->empty()) distinct.push_back({box, 1});
  }
  combine(distinct, 0);
  for (Term& term : distinct) term.weight = 1;

  const Box whole = Box::whole(shape);
  const std::uint64_t covered = volume_of(distinct);
  if (covered < whole.elements()) {
    return refuse(
        "sharding/not-covered",
        fmt::format("the boxes hold {} of the {} elements of shape {}; every element must "
                    "be in a box",
                    covered, whole.elements(), to_string(shape)));
  }
  if (covered > whole.elements()) return overlap_error(distinct);
  if (whole.empty()) return {};

  Terms difference = distinct;
  difference.push_back({&whole, -1});
  std::size_t left = kMaxTerms;
  switch (sum_of(std::move(difference), 0, left)) {
    case Sum::kZero:
      return {};
    case Sum::kOther:
      return overlap_error(distinct);
    case Sum::kUnknown:
      break;
  }
  return refuse("sharding/too-irregular",
                fmt::format("{} boxes of shape {} lie too irregularly to be checked; use fewer, or "
                            "boxes of a grid",
                            distinct.size(), to_string(shape)));
}

}  // namespace cairn
