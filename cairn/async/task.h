// SPDX-License-Identifier: Apache-2.0
// `Task`: a move-only function without arguments (C++20 has no std::move_only_function).
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace cairn {

class Task {
 public:
  Task() = default;
  template <std::invocable F>
    requires(!std::same_as<std::remove_cvref_t<F>, Task>)
  Task(F&& function)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : call_(std::make_unique<Holder<std::decay_t<F>>>(std::forward<F>(function))) {}

  explicit operator bool() const { return call_ != nullptr; }
  void operator()() { call_->run(); }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual void run() = 0;
  };
  template <typename F>
  struct Holder final : Base {
    explicit Holder(F f) : function(std::move(f)) {}
    void run() override { function(); }
    F function;
  };
  std::unique_ptr<Base> call_;
};

}  // namespace cairn
