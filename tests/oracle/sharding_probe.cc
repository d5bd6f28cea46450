// SPDX-License-Identifier: Apache-2.0
// cairn_sharding_probe VERB: one JSON a line on stdin, one answer a line on stdout. What is refused
// is answered with the reason, as text.
//
//   place   [[[axis, size], ...], [device id, ...], spec, shape]
//           -> [shape of a shard, box by device, replica id by device]
//   search  [pattern, [text, ...]]                -> [found or reason, ...]
//   rules   [rules, [[key, shape or null], ...], min_size, strict]  -> [spec, ...]
#include <deque>
#include <iostream>
#include <string>

#include "cairn/base/json.h"
#include "cairn/sharding/named_sharding.h"
#include "cairn/sharding/partition_rules.h"
#include "cairn/sharding/regex.h"

namespace {

using cairn::Json;

const Json& at(const Json& json, std::size_t index) { return (*json.array())[index]; }

cairn::Shape read_shape(const Json& json) {
  cairn::Shape shape;
  for (const Json& size : *json.array()) shape.push_back(*size.integer());
  return shape;
}

Json::Array write_shape(const cairn::Shape& shape) { return {shape.begin(), shape.end()}; }

cairn::Result<Json> place(const Json& json) {
  std::vector<cairn::MeshAxis> axes;
  for (const Json& axis : *at(json, 0).array()) {
    axes.push_back({*at(axis, 0).text(), *at(axis, 1).integer()});
  }
  std::vector<cairn::Device> devices;
  for (const Json& id : *at(json, 1).array()) {
    devices.push_back({static_cast<int>(*id.integer()), 0});
  }
  CAIRN_TRY_ASSIGN(cairn::Mesh mesh, cairn::Mesh::make(std::move(axes), std::move(devices)));
  CAIRN_TRY_ASSIGN(cairn::PartitionSpec spec, cairn::PartitionSpec::from_json(at(json, 2)));
  CAIRN_TRY_ASSIGN(const auto sharding, cairn::NamedSharding::make(std::move(mesh), spec));
  const cairn::Shape shape = read_shape(at(json, 3));
  CAIRN_TRY(sharding.check(shape));
  Json::Array boxes;
  for (const cairn::Placement& placement : sharding.placements(shape)) {
    boxes.push_back(Json::Array{placement.device.id, write_shape(placement.box.begin),
                                write_shape(placement.box.end)});
  }
  Json::Array replicas;
  for (const std::size_t id : sharding.replica_ids(shape)) replicas.emplace_back(id);
  return Json(Json::Array{write_shape(sharding.shard_shape(shape)), boxes, replicas});
}

cairn::Result<Json> search(const Json& json) {
  CAIRN_TRY_ASSIGN(const cairn::Regex regex, cairn::Regex::compile(*at(json, 0).text()));
  cairn::RegexSearch search;
  Json::Array answers;
  for (const Json& text : *at(json, 1).array()) {
    CAIRN_TRY(search.in(*text.text()));
    const auto found = search.finds(regex);
    answers.push_back(found ? Json(*found) : Json(found.error().reason()));
  }
  return Json(std::move(answers));
}

cairn::Result<Json> rules(const Json& json) {
  CAIRN_TRY_ASSIGN(const auto made, cairn::PartitionRules::parse(cairn::dump_json(at(json, 0))));
  std::deque<cairn::Shape> shapes;
  std::vector<cairn::RuleLeaf> leaves;
  for (const Json& leaf : *at(json, 1).array()) {
    const bool array = !at(leaf, 1).is_null();
    if (array) shapes.push_back(read_shape(at(leaf, 1)));
    leaves.push_back({*at(leaf, 0).text(), array ? &shapes.back() : nullptr});
  }
  CAIRN_TRY_ASSIGN(const auto specs,
                   cairn::match_partition_rules(made, leaves,
                                                {.min_size = *at(json, 2).unsigned_integer(),
                                                 .strict = *at(json, 3).boolean()}));
  Json::Array answers;
  for (const cairn::PartitionSpec& spec : specs) answers.push_back(spec.to_json());
  return Json(std::move(answers));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc == 2 ? argv[1] : "";
  const auto answer = verb == "place"    ? place
                      : verb == "search" ? search
                      : verb == "rules"  ? rules
                                         : nullptr;
  if (answer == nullptr) {
    std::cerr << "usage: cairn_sharding_probe place|search|rules\n";
    return 2;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto done = answer(*cairn::parse_json(line));
    std::cout << cairn::dump_json(done ? *done : Json(done.error().reason())) << '\n';
  }
}
