// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes that come from outside: no wrap-around, ever.
#pragma once

#include <concepts>
#include <optional>

namespace cairn {

/// a + b; nullopt if it does not fit.
template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T sum{};
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

/// a * b; nullopt if it does not fit.
template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T product{};
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

/// Smallest multiple of `step` that is >= a. REQUIRES: step > 0 and the result fits.
template <std::unsigned_integral T>
constexpr T round_up(T a, T step) {
  return (a + step - 1) / step * step;
}
template <std::integral T>
constexpr T ceil_div(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace cairn
