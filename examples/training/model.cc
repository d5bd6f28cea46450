// SPDX-License-Identifier: Apache-2.0
#include "examples/training/model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <string_view>

namespace training {

namespace {

// kContext characters and the one that follows them.
using Sample = std::vector<std::size_t>;

// A number for each character that the sentences have.
std::size_t number_of(char letter) {
  if (letter == ' ') return 0;
  if (letter == '.') return 1;
  return static_cast<std::size_t>(letter - 'a') + 2;
}

std::string sentence(std::minstd_rand& random) {
  static constexpr std::string_view kAdjectives[] = {"old ", "red ", "small ", "quiet "};
  static constexpr std::string_view kNouns[] = {"stone ", "river ", "walker ", "mountain "};
  static constexpr std::string_view kVerbs[] = {"marks ", "follows ", "sees ", "remembers "};
  const auto noun_phrase = [&] {
    return "the " + std::string(kAdjectives[random() % 4]) + std::string(kNouns[random() % 4]);
  };
  std::string text = noun_phrase();
  text += kVerbs[random() % 4];
  text += noun_phrase();
  text.back() = '.';
  return text;
}

Sample make_sample(std::int64_t step, int number) {
  std::minstd_rand random(static_cast<std::uint32_t>(step * 4096 + number + 1));
  random.discard(8);  // neighbouring seeds begin alike
  const std::string text = sentence(random);
  const std::size_t at = random() % (text.size() - kContext);
  Sample sample;
  for (std::size_t i = at; i <= at + kContext; ++i) sample.push_back(number_of(text[i]));
  return sample;
}

// out = in * matrix, for one row; matrix has in.size() rows.
std::vector<float> multiply(const std::vector<float>& in, const std::vector<float>& matrix) {
  const std::size_t columns = matrix.size() / in.size();
  std::vector<float> out(columns, 0.0F);
  for (std::size_t i = 0; i < in.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j) out[j] += in[i] * matrix[i * columns + j];
  return out;
}

// The way back through multiply(): adds to the matrix's gradient, returns that of `in`.
std::vector<float> multiply_back(const std::vector<float>& in, const std::vector<float>& matrix,
                                 const std::vector<float>& out_gradient,
                                 std::vector<float>& matrix_gradient) {
  const std::size_t columns = out_gradient.size();
  std::vector<float> in_gradient(in.size(), 0.0F);
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      matrix_gradient[i * columns + j] += in[i] * out_gradient[j];
      in_gradient[i] += matrix[i * columns + j] * out_gradient[j];
    }
  }
  return in_gradient;
}

void softmax(std::vector<float>& numbers) {
  const float largest = *std::ranges::max_element(numbers);
  float sum = 0;
  for (float& number : numbers) sum += number = std::exp(number - largest);
  for (float& number : numbers) number /= sum;
}

float learn_sample(const Matrices& parameters, const Sample& sample, Matrices& gradient) {
  const std::vector<float>& embedding = parameters.at("embedding");
  std::vector<float> in;
  for (std::size_t i = 0; i < kContext; ++i) {
    const auto row = embedding.begin() + static_cast<std::ptrdiff_t>(sample[i] * kWidth);
    in.insert(in.end(), row, row + kWidth);
  }
  std::vector<float> hidden = multiply(in, parameters.at("hidden"));
  for (float& unit : hidden) unit = std::tanh(unit);
  std::vector<float> next = multiply(hidden, parameters.at("output"));
  softmax(next);
  const float loss = -std::log(next[sample.back()]);

  next[sample.back()] -= 1;
  for (float& number : next) number /= kMicroBatches * kMicroBatchSamples;
  auto back = multiply_back(hidden, parameters.at("output"), next, gradient.at("output"));
  for (std::size_t i = 0; i < hidden.size(); ++i) back[i] *= 1 - hidden[i] * hidden[i];
  back = multiply_back(in, parameters.at("hidden"), back, gradient.at("hidden"));
  for (std::size_t i = 0; i < back.size(); ++i)
    gradient.at("embedding")[sample[i / kWidth] * kWidth + i % kWidth] += back[i];
  return loss;
}

}  // namespace

std::map<std::string, cairn::Shape> parameter_shapes(cairn::Index hidden) {
  return {{"embedding", {kVocabulary, kWidth}},
          {"hidden", {kContext * kWidth, hidden}},
          {"output", {hidden, kVocabulary}}};
}

Matrices initial_parameters(cairn::Index hidden) {
  std::minstd_rand random(42);
  Matrices matrices;
  for (const auto& [name, shape] : parameter_shapes(hidden)) {
    std::vector<float>& matrix = matrices[name];
    matrix.resize(static_cast<std::size_t>(shape[0] * shape[1]));
    const float scale = 1 / std::sqrt(static_cast<float>(shape[0]));
    for (float& number : matrix)
      number = scale * (static_cast<float>(random() % 20'001) / 10'000 - 1);
  }
  return matrices;
}

float learn(const Matrices& parameters, std::int64_t step, int micro_batch, Matrices& gradient) {
  float loss = 0;
  for (int i = 0; i < kMicroBatchSamples; ++i)
    loss +=
        learn_sample(parameters, make_sample(step, micro_batch * kMicroBatchSamples + i), gradient);
  return loss / kMicroBatchSamples;
}

}  // namespace training
