// SPDX-License-Identifier: Apache-2.0
// `Result<T>`: a value or an `Error`, spelled like std::expected, and never dropped unseen.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "cairn/base/error.h"

namespace cairn {

template <typename T>
class Result;

namespace result_detail {
// `where` is text, or a function that makes it, called only for an error.
template <typename Where>
Error add_context(Error error, Where&& where) {
  if constexpr (std::is_invocable_v<Where>) {
    return std::move(error).in(where());
  } else {
    return std::move(error).in(std::string_view(where));
  }
}
}  // namespace result_detail

/// Holds a T or an Error. Threading: compatible. Reading the side that is absent is undefined (the
/// variant checks it in debug builds).
template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(Error error)  // NOLINT(google-explicit-constructor)
      : state_(std::in_place_index<1>, std::move(error)) {}
  template <typename U = T>
    requires std::convertible_to<U&&, T> && (!std::same_as<std::remove_cvref_t<U>, Result>) &&
             (!std::same_as<std::remove_cvref_t<U>, Error>)
  Result(U&& value)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  T value_or(T other) && { return has_value() ? std::move(**this) : std::move(other); }

  /// The same result; an error gets `where` (text, or a function that returns it) as context.
  template <typename Where>
  Result in(Where&& where) && {
    if (has_value()) return std::move(*this);
    return result_detail::add_context(std::move(*this).error(), std::forward<Where>(where));
  }

  /// Drops the error on purpose; `why` is for the reader of the code.
  void ignore_error(std::string_view why) const { static_cast<void>(why); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

  template <typename Where>
  Result in(Where&& where) && {
    if (has_value()) return {};
    return result_detail::add_context(std::move(*this).error(), std::forward<Where>(where));
  }

  void ignore_error(std::string_view why) const { static_cast<void>(why); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace cairn

#define CAIRN_CONCAT_INNER_(a, b) a##b
#define CAIRN_CONCAT_(a, b) CAIRN_CONCAT_INNER_(a, b)

/// Returns the error of `expr` from the enclosing function, if there is one.
#define CAIRN_TRY(...)                                                                      \
  do {                                                                                      \
    if (auto cairn_try_ = (__VA_ARGS__); !cairn_try_) return std::move(cairn_try_).error(); \
  } while (false)

/// `CAIRN_TRY_ASSIGN(auto bytes, store.read(key));`
#define CAIRN_TRY_ASSIGN(decl, ...) \
  CAIRN_TRY_ASSIGN_INNER_(CAIRN_CONCAT_(cairn_result_, __LINE__), decl, __VA_ARGS__)
#define CAIRN_TRY_ASSIGN_INNER_(result, decl, ...) \
  auto result = (__VA_ARGS__);                     \
  if (!result) return std::move(result).error();   \
  decl = *std::move(result)
