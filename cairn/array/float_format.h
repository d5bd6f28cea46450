// SPDX-License-Identifier: Apache-2.0
// How float types lay out their bits, and conversion of one value between them. `cast.h` is for
// users.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace cairn {

/// Which codes are not numbers.
enum class Specials : std::uint8_t {
  kIeee,          ///< the highest exponent is infinity and NaN
  kNanOnly,       ///< "fn": all ones is NaN, there is no infinity
  kNegativeZero,  ///< "fnuz": the code of -0 is NaN, there is neither -0 nor infinity
  kNone,          ///< every code is a number
  kPowers,        ///< "fnu": powers of two without sign and zero; all ones is NaN
};

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials = Specials::kIeee;

  constexpr int magnitude_bits() const { return exponent_bits + mantissa_bits; }
};

constexpr FloatFormat kE2m1fn{2, 1, 1, Specials::kNone};
constexpr FloatFormat kE2m3fn{2, 3, 1, Specials::kNone};
constexpr FloatFormat kE3m2fn{3, 2, 3, Specials::kNone};
constexpr FloatFormat kE3m4{3, 4, 3};
constexpr FloatFormat kE4m3{4, 3, 7};
constexpr FloatFormat kE4m3b11fnuz{4, 3, 11, Specials::kNegativeZero};
constexpr FloatFormat kE4m3fn{4, 3, 7, Specials::kNanOnly};
constexpr FloatFormat kE4m3fnuz{4, 3, 8, Specials::kNegativeZero};
constexpr FloatFormat kE5m2{5, 2, 15};
constexpr FloatFormat kE5m2fnuz{5, 2, 16, Specials::kNegativeZero};
constexpr FloatFormat kE8m0fnu{8, 0, 127, Specials::kPowers};
constexpr FloatFormat kHalf{5, 10, 15};
constexpr FloatFormat kBrain{8, 7, 127};
constexpr FloatFormat kSingle{8, 23, 127};

/// Of float32, as bits.
constexpr std::uint32_t kInfinity = 0x7F80'0000U;
constexpr std::uint32_t kQuietNan = 0x7FC0'0000U;

/// `a` where `mask` is all ones, `b` where it is zero. Compilers make branches of ?: that has
/// floating point on one side.
[[gnu::always_inline]] constexpr std::uint32_t pick(std::uint32_t mask, std::uint32_t a,
                                                    std::uint32_t b) {
  return (a & mask) | (b & ~mask);
}

/// Bits of a float32 to the code of `kTo`, rounded to nearest even. No branches, so that loops over
/// it become vector code. REQUIRES: the default rounding mode.
template <FloatFormat kTo>
[[gnu::always_inline]] constexpr std::uint32_t narrow(std::uint32_t bits) {
  constexpr int kDropped = kSingle.mantissa_bits - kTo.mantissa_bits;
  constexpr auto kRebias = static_cast<std::uint32_t>(kSingle.bias - kTo.bias) << 23;
  constexpr std::uint32_t kSmallestNormal = kRebias + (1U << 23);
  // Here float32 has the steps that the subnormal numbers of `kTo` have: an addition rounds to
  // them.
  constexpr std::uint32_t kSameSteps =
      kSmallestNormal + (static_cast<std::uint32_t>(kDropped) << 23);

  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  const std::uint32_t subnormal = magnitude < kSmallestNormal ? ~0U : 0U;
  const float sum = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kSameSteps & subnormal);
  const auto number = std::bit_cast<std::uint32_t>(sum);
  const std::uint32_t odd = (number >> kDropped) & 1;
  const std::uint32_t rounded = (number - kRebias + (1U << (kDropped - 1)) - 1 + odd) >> kDropped;
  const std::uint32_t code = pick(subnormal, number - kSameSteps, rounded);

  constexpr std::uint32_t kSign = 1U << kTo.magnitude_bits();
  const std::uint32_t sign = bits >> 31 << kTo.magnitude_bits();
  const std::uint32_t nan = magnitude > kInfinity ? ~0U : 0U;
  if constexpr (kTo.specials == Specials::kIeee) {
    constexpr std::uint32_t kOverflow = ((1U << kTo.exponent_bits) - 1) << kTo.mantissa_bits;
    constexpr std::uint32_t kNan = kOverflow | (1U << (kTo.mantissa_bits - 1));
    return sign | pick(nan, kNan, std::min(code, kOverflow));
  } else if constexpr (kTo.specials == Specials::kNanOnly) {
    return sign | std::min(code, kSign - 1);
  } else if constexpr (kTo.specials == Specials::kNegativeZero) {
    return code == 0 ? 0 : code >= kSign ? kSign : sign | code;
  } else {
    static_assert(kTo.specials == Specials::kNone);
    // As in ml_dtypes, whose NaN of such a type is -0.
    return pick(nan, sign ^ kSign, sign | std::min(code, kSign - 1));
  }
}

/// bfloat16 is the upper half of a float32: the same as above in fewer steps.
template <>
[[gnu::always_inline]] constexpr std::uint32_t narrow<kBrain>(std::uint32_t bits) {
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1)) >> 16;
  const std::uint32_t nan = (bits >> 31 << 15) | (kQuietNan >> 16);
  return (bits & 0x7FFF'FFFFU) > kInfinity ? nan : rounded;
}

/// The nearest power of two, ties upward; the smallest one for all that is smaller. NaN for zero
/// and negative numbers.
template <>
[[gnu::always_inline]] constexpr std::uint32_t narrow<kE8m0fnu>(std::uint32_t bits) {
  constexpr std::uint32_t kNan = 0xFF;
  const std::uint32_t normal = std::min((bits + 0x0040'0000U) >> 23, kNan);
  // 2^-127, the smallest, is a subnormal float32; halfway to the next is 1.5 * 2^-127.
  const std::uint32_t subnormal = bits >= 0x0060'0000U ? 1 : 0;
  const std::uint32_t code = bits < 0x0080'0000U ? subnormal : normal;
  return static_cast<std::int32_t>(bits) <= 0 ? kNan : code;
}

/// A double cut to a float32 whose last bit says whether anything was lost. Rounding that once
/// more, to a type with at least two bits less, gives what rounding the double itself would.
[[gnu::always_inline]] inline std::uint32_t narrow_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  const std::uint32_t away = std::fabs(back) > std::fabs(value) ? 1 : 0;
  const std::uint32_t lost = ((back < value) | (back > value)) ? 1 : 0;
  return (std::bit_cast<std::uint32_t>(nearest) - away) | lost;
}

/// Code of a type of at most eight bits to the bits of a float32. Higher bits of `code` are
/// ignored.
template <FloatFormat kFrom>
constexpr std::uint32_t widen_small(std::uint32_t code) {
  constexpr std::uint32_t kSign = 1U << kFrom.magnitude_bits();
  constexpr std::uint32_t kFields = (1U << kFrom.exponent_bits) - 1;
  const std::uint32_t magnitude = code & (kSign - 1);
  const std::uint32_t sign = (code & kSign) != 0 ? 0x8000'0000U : 0;
  const std::uint32_t field = magnitude >> kFrom.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << kFrom.mantissa_bits) - 1);
  if constexpr (kFrom.specials == Specials::kPowers) {
    if (magnitude == kSign - 1) return kQuietNan;
    return field == 0 ? 0x0040'0000U : field << kSingle.mantissa_bits;
  }
  if constexpr (kFrom.specials == Specials::kIeee) {
    if (field == kFields) return sign | (mantissa == 0 ? kInfinity : kQuietNan);
  }
  if (kFrom.specials == Specials::kNanOnly && magnitude == kSign - 1) return sign | kQuietNan;
  if (kFrom.specials == Specials::kNegativeZero && magnitude == 0 && sign != 0) {
    return sign | kQuietNan;
  }
  const std::uint32_t significand = mantissa | (field == 0 ? 0 : 1U << kFrom.mantissa_bits);
  const int exponent = std::max(static_cast<int>(field), 1) - kFrom.bias - kFrom.mantissa_bits;
  const auto unit = std::bit_cast<float>(static_cast<std::uint32_t>(exponent + kSingle.bias)
                                         << kSingle.mantissa_bits);
  return sign | std::bit_cast<std::uint32_t>(static_cast<float>(significand) * unit);
}

/// The same for float16. No branches.
[[gnu::always_inline]] constexpr std::uint32_t widen_half(std::uint32_t code) {
  constexpr std::uint32_t kRebias = 112U << 23;
  constexpr std::uint32_t kSmallestNormal = 113U << 23;
  const std::uint32_t magnitude = code & 0x7FFFU;
  const bool subnormal = magnitude < 0x0400U;
  // A subnormal number becomes the mantissa of 2^-14, which is then taken away again.
  const std::uint32_t shifted = (magnitude << 13) + (subnormal ? kSmallestNormal : kRebias);
  const std::uint32_t excess = subnormal ? kSmallestNormal : 0;
  const float value = std::bit_cast<float>(shifted) - std::bit_cast<float>(excess);
  const std::uint32_t special = magnitude >= 0x7C00U ? kInfinity : 0;
  return (code & 0x8000U) << 16 | std::bit_cast<std::uint32_t>(value) | special;
}

[[gnu::always_inline]] constexpr std::uint32_t widen_brain(std::uint32_t code) {
  return code << 16;
}

}  // namespace cairn
