// SPDX-License-Identifier: Apache-2.0
#include "examples/training/state.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "cairn/array/array.h"
#include "cairn/sharding/make_sharded.h"

namespace training {

namespace {

using cairn::Array;
using cairn::Result;
using cairn::ShardedArray;

/// This rank's memory of an array: its box, rows one after the other.
std::span<float> local(const ShardedArray& array) {
  Array data = array.shards().front().data;
  return {reinterpret_cast<float*>(data.mutable_data()), data.elements()};
}

/// Memory for this rank's box of an array, and what `whole` has there. (A large model would fill
/// its boxes without ever having the whole.)
Result<ShardedArray> take_box(const Array& whole, const cairn::PartitionSpec& spec,
                              const Job& job) {
  CAIRN_TRY_ASSIGN(auto sharding, cairn::NamedSharding::make(job.mesh, spec));
  CAIRN_TRY_ASSIGN(
      auto mine, cairn::allocate_sharded(whole.dtype(), whole.shape(), sharding, job.ranks.rank()));
  Array box = mine.shards().front().data;
  CAIRN_TRY(cairn::copy_array(whole.slice(mine.box_of(mine.shards().front())), box));
  return mine;
}

/// What all ranks give, in the order of ranks, on every rank. A real job has faster collectives,
/// NCCL's or MPI's; Cairn's coordinator is made for few and small messages, and is enough here.
Result<std::vector<float>> all_gather(const std::vector<float>& mine, const std::string& phase,
                                      const Job& job) {
  const auto deadline = cairn::Deadline::in(std::chrono::minutes(2));
  CAIRN_TRY_ASSIGN(const auto parts,
                   job.ranks.gather(std::as_bytes(std::span(mine)), phase, deadline));
  std::vector<std::byte> joined;  // rank 0's
  for (const cairn::Buffer& part : parts)
    joined.insert(joined.end(), part.bytes().begin(), part.bytes().end());
  CAIRN_TRY_ASSIGN(const auto heard, job.ranks.broadcast(joined, phase, deadline));
  std::vector<float> all(heard.size() / sizeof(float));
  std::memcpy(all.data(), heard.data(), heard.size());
  return all;
}

/// The whole parameters, on every rank, for as long as a step needs them.
Result<Matrices> gather_parameters(const Shards& parameters, const Job& job) {
  std::vector<float> mine;
  for (const auto& [name, array] : parameters)
    mine.insert(mine.end(), local(array).begin(), local(array).end());
  CAIRN_TRY_ASSIGN(const auto all, all_gather(mine, "parameters", job));

  Matrices whole;
  const float* from = all.data();
  for (std::size_t rank = 0; rank < job.mesh.size(); ++rank) {
    for (const auto& [name, array] : parameters) {
      const cairn::Box box = array.sharding().box(rank, array.shape());  // of any rank
      const cairn::Index width = array.shape()[1];
      std::vector<float>& matrix = whole[name];
      matrix.resize(static_cast<std::size_t>(array.shape()[0] * width));
      for (cairn::Index row = box.begin[0]; row < box.end[0]; ++row)
        for (cairn::Index column = box.begin[1]; column < box.end[1]; ++column)
          matrix[static_cast<std::size_t>(row * width + column)] = *from++;
    }
  }
  return whole;
}

/// Gradient and loss of the whole batch. Ranks share the micro-batches. Each is the work of one
/// rank, and they are added up in the order of micro-batches: with floats another order is another
/// sum. So the numbers are the same bit for bit, however many ranks there are. (Adding up on each
/// rank first would send less, and then losses would agree to about 1e-6 only.)
Result<float> gather_gradient(const Matrices& parameters, std::int64_t step, const Job& job,
                              Matrices& gradient) {
  for (const auto& [name, matrix] : parameters) gradient[name].assign(matrix.size(), 0.0F);
  const int rank = job.ranks.rank();
  const int count = job.ranks.count();
  std::vector<float> mine;
  for (int i = rank * kMicroBatches / count; i < (rank + 1) * kMicroBatches / count; ++i) {
    Matrices part = gradient;
    mine.push_back(learn(parameters, step, i, part));
    for (const auto& [name, matrix] : part) mine.insert(mine.end(), matrix.begin(), matrix.end());
  }
  CAIRN_TRY_ASSIGN(const auto all, all_gather(mine, "gradients", job));

  float loss = 0;
  const float* from = all.data();
  for (int i = 0; i < kMicroBatches; ++i) {
    loss += *from++;
    for (auto& [name, matrix] : gradient)
      for (float& number : matrix) number += *from++;
  }
  return loss / kMicroBatches;
}

/// Adam on this rank's box of one parameter.
void update(const ShardedArray& parameter, std::span<float> mean, std::span<float> variance,
            const std::vector<float>& gradient, std::int64_t step) {
  constexpr float kRate = 0.004F;
  constexpr float kBeta1 = 0.9F;
  constexpr float kBeta2 = 0.99F;
  const auto t = static_cast<float>(step);
  const float rate = kRate * std::sqrt(1 - std::pow(kBeta2, t)) / (1 - std::pow(kBeta1, t));
  const cairn::Box box = parameter.box_of(parameter.shards().front());
  const cairn::Index width = parameter.shape()[1];
  const std::span<float> weights = local(parameter);
  std::size_t i = 0;
  for (cairn::Index row = box.begin[0]; row < box.end[0]; ++row) {
    for (cairn::Index column = box.begin[1]; column < box.end[1]; ++column, ++i) {
      const float g = gradient[static_cast<std::size_t>(row * width + column)];
      mean[i] = kBeta1 * mean[i] + (1 - kBeta1) * g;
      variance[i] = kBeta2 * variance[i] + (1 - kBeta2) * g * g;
      weights[i] -= rate * mean[i] / (std::sqrt(variance[i]) + 1e-8F);
    }
  }
}

}  // namespace

Result<cairn::PartitionRules> partition_rules() {
  return cairn::PartitionRules::parse(R"([
      ["embedding$",       ["fsdp"]],
      ["(hidden|output)$", ["fsdp", "tp"]],
      [".*",               []]
  ])");
}

Result<State> initial_state(cairn::Index hidden, const Job& job) {
  State state;
  Matrices initial = initial_parameters(hidden);
  for (const auto& [name, shape] : parameter_shapes(hidden)) {
    const cairn::RuleLeaf leaf{name, &shape};
    CAIRN_TRY_ASSIGN(const auto specs, cairn::match_partition_rules(job.rules, {&leaf, 1}));
    const auto bytes = std::as_writable_bytes(std::span(initial[name]));
    CAIRN_TRY_ASSIGN(const Array whole, Array::wrap(cairn::DType::kFloat32, shape,
                                                    cairn::Buffer::borrow(bytes, nullptr)));
    CAIRN_TRY_ASSIGN(const Array zeros, Array::zeros(cairn::DType::kFloat32, shape));
    CAIRN_TRY_ASSIGN(auto parameter, take_box(whole, specs[0], job));
    CAIRN_TRY_ASSIGN(auto mean, take_box(zeros, specs[0], job));
    CAIRN_TRY_ASSIGN(auto variance, take_box(zeros, specs[0], job));
    state.parameters.emplace(name, std::move(parameter));
    state.mean.emplace(name, std::move(mean));
    state.variance.emplace(name, std::move(variance));
  }
  return state;
}

Result<float> train_step(State& state, const Job& job) {
  CAIRN_TRY_ASSIGN(const Matrices parameters, gather_parameters(state.parameters, job));
  Matrices gradient;
  CAIRN_TRY_ASSIGN(const float loss, gather_gradient(parameters, state.step, job, gradient));
  ++state.step;
  for (const auto& [name, parameter] : state.parameters)
    update(parameter, local(state.mean.at(name)), local(state.variance.at(name)), gradient.at(name),
           state.step);
  return loss;
}

}  // namespace training
