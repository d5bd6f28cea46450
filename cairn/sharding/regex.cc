// SPDX-License-Identifier: Apache-2.0
#include "cairn/sharding/regex.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "cairn/base/utf8.h"
#include "cairn/sharding/python_regex.h"
#include "cairn/sharding/refuse.h"

namespace cairn {
namespace {

// Some ten milliseconds. Key paths are short: what needs more grows without bound.
constexpr std::uint32_t kMatchLimit = 1'000'000;
constexpr std::uint32_t kHeapKiB = 32 << 10;

// PCRE2 10.42 makes too much possessive: without the last option, b?(?:#)?+b is not found in "b".
constexpr std::uint32_t kOptions =
    PCRE2_UTF | PCRE2_UCP | PCRE2_ALT_CIRCUMFLEX | PCRE2_NO_AUTO_POSSESS;

struct Free {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

Error out_of_memory() {
  return Error(Code::kResourceExhausted, "base/out-of-memory",
               "there is no memory for a regular expression");
}

std::string describe(int error) {
  std::string text(256, '\0');
  const int length =
      pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return text;
}

PCRE2_SPTR chars(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  CAIRN_TRY_ASSIGN(const std::string translated, pcre_of_python(pattern));
  const std::unique_ptr<pcre2_compile_context, Free> context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) return out_of_memory();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t position = 0;
  pcre2_code* code = pcre2_compile(chars(translated), translated.size(), kOptions, &error,
                                   &position, context.get());
  if (code != nullptr)
    return Regex(std::shared_ptr<const void>(code, [](const void* compiled) {
      pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(compiled)));
    }));
  if (error == PCRE2_ERROR_HEAP_FAILED) return out_of_memory();
  return refuse("regex/unsupported",
                fmt::format("the expression is too large for PCRE2: {}", describe(error)));
}

struct RegexSearch::State {
  std::unique_ptr<pcre2_match_context, Free> context{pcre2_match_context_create(nullptr)};
  std::unique_ptr<pcre2_match_data, Free> data{pcre2_match_data_create(1, nullptr)};
  std::string_view text;
};

RegexSearch::RegexSearch() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr) return;
  pcre2_set_match_limit(state_->context.get(), kMatchLimit);
  pcre2_set_heap_limit(state_->context.get(), kHeapKiB);
}

RegexSearch::~RegexSearch() = default;

Result<void> RegexSearch::in(std::string_view text) {
  if (!is_utf8(text)) {
    return refuse("regex/utf8",
                  fmt::format("the text is not UTF-8 from byte {} on", valid_utf8_prefix(text)));
  }
  state_->text = text;
  return {};
}

Result<bool> RegexSearch::finds(const Regex& regex) {
  if (state_->context == nullptr || state_->data == nullptr) return out_of_memory();
  const int found = pcre2_match(static_cast<const pcre2_code*>(regex.code_.get()),
                                chars(state_->text), state_->text.size(), 0, PCRE2_NO_UTF_CHECK,
                                state_->data.get(), state_->context.get());
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found == PCRE2_ERROR_NOMEMORY) return out_of_memory();
  if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_HEAPLIMIT) {
    return refuse("regex/limit",
                  "the search stopped after too many steps; repeats within repeats are the "
                  "usual cause");
  }
  return Error(Code::kInternal, "regex/search", "PCRE2 failed: " + describe(found));
}

}  // namespace cairn
