// SPDX-License-Identifier: Apache-2.0
// How float types lay out their bits, and conversion of one value between them. `cast.h` is for
// users.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cairn::inline array {

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
constexpr FloatFormat kDouble{11, 52, 1023};

/// The bits of a float or double.
template <typename Bits>
constexpr FloatFormat kFormatOf = sizeof(Bits) == 4 ? kSingle : kDouble;

/// Bits of a float32 (float64) to the code of `kTo`, rounded once, to nearest even. No branches, so
/// that loops over it become vector code.
template <FloatFormat kTo, typename Bits>
[[gnu::always_inline]] constexpr Bits narrow(Bits bits) {
  constexpr FloatFormat kFrom = kFormatOf<Bits>;
  constexpr Bits kOne = 1;
  constexpr int kDropped = kFrom.mantissa_bits - kTo.mantissa_bits;
  // The exponent field, in `kFrom`, of the smallest normal number of `kTo`.
  constexpr int kFloor = kFrom.bias - kTo.bias + 1;
  constexpr Bits kImplicit = kOne << kFrom.mantissa_bits;
  constexpr Bits kFromInfinity = ((kOne << kFrom.exponent_bits) - 1) << kFrom.mantissa_bits;

  const Bits magnitude = bits & ((kOne << kFrom.magnitude_bits()) - 1);
  const bool negative = magnitude != bits;
  const int field = static_cast<int>(magnitude >> kFrom.mantissa_bits);
  const int exponent = std::max(field, 1);
  const Bits significand = (magnitude & (kImplicit - 1)) | (field == 0 ? 0 : kImplicit);

  const int below = std::max(kFloor - exponent, 0);
  const int shift = std::min(kDropped + below, kFrom.mantissa_bits + 2);
  const Bits odd = (significand >> shift) & 1;
  const Bits kept = (significand + (kOne << (shift - 1)) - 1 + odd) >> shift;
  // The implicit bit of `kept` adds the last 1 to the exponent, as does a carry out of rounding.
  const Bits above = static_cast<Bits>(std::max(exponent - kFloor, 0));
  const Bits code = (above << kTo.mantissa_bits) + kept;

  constexpr Bits kSign = kOne << kTo.magnitude_bits();
  const Bits sign = negative ? kSign : 0;
  const bool nan = magnitude > kFromInfinity;
  if constexpr (kTo.specials == Specials::kIeee) {
    constexpr Bits kInfinity = ((kOne << kTo.exponent_bits) - 1) << kTo.mantissa_bits;
    constexpr Bits kNan = kInfinity | (kOne << (kTo.mantissa_bits - 1));
    return sign | (nan ? kNan : std::min(code, kInfinity));
  } else if constexpr (kTo.specials == Specials::kNanOnly) {
    return sign | std::min(code, kSign - 1);
  } else if constexpr (kTo.specials == Specials::kNegativeZero) {
    return code == 0 ? 0 : code >= kSign ? kSign : sign | code;
  } else {
    static_assert(kTo.specials == Specials::kNone);
    // As in ml_dtypes, whose NaN of such a type is -0.
    return nan ? sign ^ kSign : sign | std::min(code, kSign - 1);
  }
}

/// The nearest power of two, ties upward; the smallest one for all that is smaller. NaN for zero
/// and negative numbers.
[[gnu::always_inline]] constexpr std::uint64_t narrow_to_power(std::uint64_t bits) {
  constexpr std::uint64_t kHalfWay = std::uint64_t{1} << (kDouble.mantissa_bits - 1);
  constexpr std::int64_t kShift = kDouble.bias - kE8m0fnu.bias;
  constexpr std::int64_t kNan = 0xFF;
  const auto rounded = static_cast<std::int64_t>((bits + kHalfWay) >> kDouble.mantissa_bits);
  const std::int64_t code = std::clamp<std::int64_t>(rounded - kShift, 0, kNan);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits) <= 0 ? kNan : code);
}

/// Code of a type of at most eight bits to the bits of a float32. Higher bits of `code` are
/// ignored.
template <FloatFormat kFrom>
constexpr std::uint32_t widen_small(std::uint32_t code) {
  constexpr std::uint32_t kSign = 1U << kFrom.magnitude_bits();
  constexpr std::uint32_t kFields = (1U << kFrom.exponent_bits) - 1;
  constexpr std::uint32_t kQuietNan = 0x7FC0'0000U;
  const std::uint32_t magnitude = code & (kSign - 1);
  const std::uint32_t sign = (code & kSign) != 0 ? 0x8000'0000U : 0;
  const std::uint32_t field = magnitude >> kFrom.mantissa_bits;
  const std::uint32_t mantissa = magnitude & ((1U << kFrom.mantissa_bits) - 1);
  if constexpr (kFrom.specials == Specials::kPowers) {
    if (magnitude == kSign - 1) return kQuietNan;
    return field == 0 ? 0x0040'0000U : field << kSingle.mantissa_bits;
  }
  if constexpr (kFrom.specials == Specials::kIeee) {
    if (field == kFields) return sign | (mantissa == 0 ? 0x7F80'0000U : kQuietNan);
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
  constexpr int kShift = kSingle.mantissa_bits - kHalf.mantissa_bits;
  constexpr auto kRebias = static_cast<std::uint32_t>(kSingle.bias - kHalf.bias)
                           << kSingle.mantissa_bits;
  const std::uint32_t sign = (code & 0x8000U) << 16;
  const std::uint32_t magnitude = code & 0x7FFFU;
  // Twice the step in exponents takes infinity and NaN to those of float32.
  const std::uint32_t normal =
      (magnitude << kShift) + (magnitude >= 0x7C00U ? 2 * kRebias : kRebias);
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24F);
  return sign | (magnitude < 0x0400U ? subnormal : normal);
}

[[gnu::always_inline]] constexpr std::uint32_t widen_brain(std::uint32_t code) {
  return code << 16;
}

}  // namespace cairn::inline array
