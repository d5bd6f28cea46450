// SPDX-License-Identifier: Apache-2.0
// The maths of the example: a language model over characters. Four characters are looked up in an
// embedding, go through one hidden layer, and tell which character comes next. Nothing here knows
// of checkpoints or ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cairn/array/shape.h"

namespace training {

constexpr cairn::Index kVocabulary = 32;
constexpr cairn::Index kWidth = 16;   // of the embedding
constexpr cairn::Index kContext = 4;  // characters that the model sees

/// Samples of a step, whatever the number of ranks. They are worked on in groups, micro-batches.
constexpr int kMicroBatches = 8;
constexpr int kMicroBatchSamples = 32;

/// Whole matrices by name, rows one after the other.
using Matrices = std::map<std::string, std::vector<float>>;

std::map<std::string, cairn::Shape> parameter_shapes(cairn::Index hidden);

Matrices initial_parameters(cairn::Index hidden);

/// Adds the gradient of one micro-batch to `gradient`, which has the shapes of `parameters`, and
/// returns the mean loss. Which samples these are depends on the step and the number of the
/// micro-batch and on nothing else: no file of data, no generator whose state would have to be
/// saved.
float learn(const Matrices& parameters, std::int64_t step, int micro_batch, Matrices& gradient);

}  // namespace training
