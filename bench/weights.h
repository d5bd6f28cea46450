// SPDX-License-Identifier: Apache-2.0
// Data as it is in checkpoints: weights of a normal distribution, never zeros.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cairn/base/bytes.h"

namespace cairn::bench {

/// What one pass works on: more than the caches hold.
constexpr std::size_t kBytes = 32 * kMiB;

inline std::vector<float> float_weights(std::size_t count) {
  std::mt19937 random(1);  // NOLINT: the same data in every run
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> weights(count);
  for (float& weight : weights) weight = normal(random);
  return weights;
}

/// `bytes` of weights as bfloat16, truncated.
inline std::vector<std::byte> bfloat16_weights(std::size_t bytes) {
  const std::vector<float> weights = float_weights(bytes / 2);
  std::vector<std::byte> result(bytes);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &weights[i], sizeof bits);
    const auto high = static_cast<std::uint16_t>(bits >> 16);
    std::memcpy(&result[2 * i], &high, sizeof high);
  }
  return result;
}

}  // namespace cairn::bench
