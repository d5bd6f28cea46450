// SPDX-License-Identifier: Apache-2.0
// Every type has one loop that widens it to float32 and one that narrows float32 to it; a cast is
// one of them, or both by way of a small block. All types but float64 fit into float32 without
// loss, and what float64 loses does not change how the result is rounded.
#include "cairn/array/cast.h"

#include <algorithm>
#include <array>
#include <cfenv>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "cairn/array/float_format.h"

#if defined(__x86_64__)
#define CAIRN_WIDE [[gnu::target("avx2,bmi2")]]
#else
#define CAIRN_WIDE
#endif

namespace cairn {
namespace {

bool has_wide_vectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
#else
  return false;
#endif
}

// Elements that may lie at any address.
template <typename T>
[[gnu::always_inline]] inline T load(const std::byte* from, std::size_t index) {
  T value;
  std::memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}
template <typename T>
[[gnu::always_inline]] inline void store(std::byte* to, std::size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

using CastLoop = void (*)(const std::byte* from, std::size_t count, std::byte* to);

template <typename From, typename To, auto kConvert>
[[gnu::always_inline]] inline void convert_all(const std::byte* __restrict from, std::size_t count,
                                               std::byte* __restrict to) {
  for (std::size_t i = 0; i < count; ++i) {
    store(to, i, static_cast<To>(kConvert(load<From>(from, i))));
  }
}

template <typename From, typename To, auto kConvert>
void plain_loop(const std::byte* from, std::size_t count, std::byte* to) {
  convert_all<From, To, kConvert>(from, count, to);
}
template <typename From, typename To, auto kConvert>
CAIRN_WIDE void wide_loop(const std::byte* from, std::size_t count, std::byte* to) {
  convert_all<From, To, kConvert>(from, count, to);
}

// One conversion for machines with and without wide vectors.
struct LoopPair {
  CastLoop plain = nullptr;
  CastLoop wide = nullptr;

  void operator()(const std::byte* from, std::size_t count, std::byte* to) const {
    static const bool wide_here = has_wide_vectors();
    (wide_here ? wide : plain)(from, count, to);
  }
};

template <typename From, typename To, auto kConvert>
constexpr LoopPair kLoops = {plain_loop<From, To, kConvert>, wide_loop<From, To, kConvert>};

struct Conversions {
  LoopPair to_single;
  LoopPair from_single;
};

template <FloatFormat kFormat>
constexpr auto kSmallTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t code = 0; code < table.size(); ++code)
    table[code] = widen_small<kFormat>(code);
  return table;
}();

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;

template <typename Code, FloatFormat kFormat>
constexpr LoopPair kNarrow = kLoops<U32, Code, [](U32 bits) { return narrow<kFormat>(bits); }>;

template <FloatFormat kFormat>
constexpr Conversions kSmall = {kLoops<U8, U32, [](U8 code) { return kSmallTable<kFormat>[code]; }>,
                                kNarrow<U8, kFormat>};

constexpr Conversions kHalves = {kLoops<U16, U32, [](U16 code) { return widen_half(code); }>,
                                 kNarrow<U16, kHalf>};

constexpr Conversions kBrains = {kLoops<U16, U32, [](U16 code) { return widen_brain(code); }>,
                                 kNarrow<U16, kBrain>};

constexpr Conversions kDoubles = {kLoops<double, U32, [](double x) { return narrow_to_odd(x); }>,
                                  kLoops<float, double, [](float x) { return double{x}; }>};

constexpr LoopPair kDoubleToSingle =
    kLoops<double, float, [](double x) { return static_cast<float>(x); }>;

struct CastRow {
  DType dtype;
  Conversions conversions;
};
constexpr std::array kCastRows = {
    CastRow{DType::kFloat4E2m1fn, kSmall<kE2m1fn>},
    CastRow{DType::kFloat6E2m3fn, kSmall<kE2m3fn>},
    CastRow{DType::kFloat6E3m2fn, kSmall<kE3m2fn>},
    CastRow{DType::kFloat8E3m4, kSmall<kE3m4>},
    CastRow{DType::kFloat8E4m3, kSmall<kE4m3>},
    CastRow{DType::kFloat8E4m3b11fnuz, kSmall<kE4m3b11fnuz>},
    CastRow{DType::kFloat8E4m3fn, kSmall<kE4m3fn>},
    CastRow{DType::kFloat8E4m3fnuz, kSmall<kE4m3fnuz>},
    CastRow{DType::kFloat8E5m2, kSmall<kE5m2>},
    CastRow{DType::kFloat8E5m2fnuz, kSmall<kE5m2fnuz>},
    CastRow{DType::kFloat8E8m0fnu, kSmall<kE8m0fnu>},
    CastRow{DType::kFloat16, kHalves},
    CastRow{DType::kBfloat16, kBrains},
    CastRow{DType::kFloat64, kDoubles},
};

// REQUIRES: a float type other than float32.
const Conversions& conversions_of(DType dtype) {
  return std::find_if(kCastRows.begin(), kCastRows.end() - 1,
                      [&](const CastRow& row) { return row.dtype == dtype; })
      ->conversions;
}

void cast_by_blocks(DType from_type, ByteSpan from, DType to_type, MutableByteSpan to) {
  constexpr std::size_t kBlock = 1024;
  std::array<std::byte, kBlock * sizeof(float)> block;
  const LoopPair widen = conversions_of(from_type).to_single;
  const LoopPair narrow = conversions_of(to_type).from_single;
  const std::size_t count = from.size() / item_size(from_type);
  for (std::size_t done = 0; done < count; done += kBlock) {
    const std::size_t now = std::min(kBlock, count - done);
    widen(from.data() + done * item_size(from_type), now, block.data());
    narrow(block.data(), now, to.data() + done * item_size(to_type));
  }
}

// The caller's thread may round otherwise or flush subnormals to zero.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

bool is_complex(DType dtype) { return dtype_kind(dtype) == DTypeKind::kComplex; }

// The type of a complex number's halves; others as they are.
DType part_type(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  if (dtype == DType::kComplex128) return DType::kFloat64;
  return dtype;
}

std::uint64_t low_bits(DType dtype, const std::byte* element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, std::min(item_size(dtype), sizeof(bits)));
  const int width = bit_width(dtype);
  return width >= 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
}

std::int64_t signed_value(DType dtype, const std::byte* element) {
  const int unused = 64 - bit_width(dtype);
  return static_cast<std::int64_t>(low_bits(dtype, element) << unused) >> unused;
}

bool reads_back(DType dtype, const std::byte* element, std::string_view text) {
  double read = 0;
  std::from_chars(text.data(), text.data() + text.size(), read);
  std::array<std::byte, sizeof(double)> back;
  cast_elements(DType::kFloat64, std::as_bytes(std::span(&read, 1)), dtype, back);
  return std::memcmp(back.data(), element, item_size(dtype)) == 0;
}

// Digits are added until the text reads back. Short integers are written out: 448, not 4.5e+02.
std::string float_as_text(DType dtype, const std::byte* element) {
  const double value = element_as_double(dtype, element);
  if (std::isnan(value)) return "nan";
  if (dtype == DType::kFloat64) return fmt::format("{}", value);
  if (dtype == DType::kFloat32) return fmt::format("{}", static_cast<float>(value));
  const double magnitude = std::fabs(value);
  const bool short_integer = magnitude >= 1 && magnitude < 1e6;
  int digits = short_integer ? static_cast<int>(std::log10(magnitude)) + 1 : 1;
  std::string text;
  do {
    text = fmt::format("{:.{}g}", value, digits);
  } while (++digits <= 9 && !reads_back(dtype, element, text));
  return text;
}

std::string complex_as_text(DType dtype, const std::byte* element) {
  const DType part = part_type(dtype);
  const std::string real = float_as_text(part, element);
  const std::string imaginary = float_as_text(part, element + item_size(part));
  return fmt::format("({}{}{}j)", real, imaginary.front() == '-' ? "" : "+", imaginary);
}

}  // namespace

bool can_cast(DType from, DType to) {
  return (is_float(from) && is_float(to)) || (is_complex(from) && is_complex(to));
}

void cast_elements(DType from_type, ByteSpan from, DType to_type, MutableByteSpan to) {
  from_type = part_type(from_type);
  to_type = part_type(to_type);
  if (from_type == to_type) {
    if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
    return;
  }
  const DefaultFloatEnvironment environment;
  const std::size_t count = from.size() / item_size(from_type);
  if (from_type == DType::kFloat64 && to_type == DType::kFloat32) {
    kDoubleToSingle(from.data(), count, to.data());
  } else if (from_type == DType::kFloat32) {
    conversions_of(to_type).from_single(from.data(), count, to.data());
  } else if (to_type == DType::kFloat32) {
    conversions_of(from_type).to_single(from.data(), count, to.data());
  } else {
    cast_by_blocks(from_type, from, to_type, to);
  }
}

Result<Array> cast_array(const Array& array, DType to) {
  if (array.dtype() == to) return array;
  if (!can_cast(array.dtype(), to)) {
    return Error(Code::kInvalidArgument, "cast/unsupported",
                 fmt::format("cannot cast {} to {}; only floats are cast to floats, and complex to "
                             "complex",
                             dtype_name(array.dtype()), dtype_name(to)));
  }
  CAIRN_TRY_ASSIGN(const Array source, array.to_dense());
  CAIRN_TRY_ASSIGN(Array target, Array::allocate(to, array.shape()));
  cast_elements(array.dtype(), source.bytes(), to, target.mutable_bytes());
  return target;
}

Result<Array> put_dtype(const Array& array, std::optional<DType> to) {
  switch (array.dtype()) {
    case DType::kFloat16:
    case DType::kBfloat16:
    case DType::kFloat32:
    case DType::kFloat64:
      return to ? cast_array(array, *to) : array;
    default:
      return array;
  }
}

double element_as_double(DType dtype, const std::byte* element) {
  switch (dtype_kind(dtype)) {
    case DTypeKind::kBool:
      return element[0] == std::byte{0} ? 0.0 : 1.0;
    case DTypeKind::kSigned:
      return static_cast<double>(signed_value(dtype, element));
    case DTypeKind::kUnsigned:
      return static_cast<double>(low_bits(dtype, element));
    case DTypeKind::kFloat:
    case DTypeKind::kComplex:
      break;
  }
  const DType part = part_type(dtype);
  double value = 0;
  cast_elements(part, {element, item_size(part)}, DType::kFloat64,
                std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::string element_as_text(DType dtype, const std::byte* element) {
  switch (dtype_kind(dtype)) {
    case DTypeKind::kBool:
      return element[0] == std::byte{0} ? "false" : "true";
    case DTypeKind::kSigned:
      return fmt::to_string(signed_value(dtype, element));
    case DTypeKind::kUnsigned:
      return fmt::to_string(low_bits(dtype, element));
    case DTypeKind::kFloat:
      return float_as_text(dtype, element);
    case DTypeKind::kComplex:
      return complex_as_text(dtype, element);
  }
  return {};
}

}  // namespace cairn
