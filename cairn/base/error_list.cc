// SPDX-License-Identifier: Apache-2.0
#include "cairn/base/error_list.h"

#include <fmt/format.h>

namespace cairn {

void ErrorList::add(Error error) {
  ++count_;
  if (count_ <= kMostSentences) sentences_ += (count_ > 1 ? "; " : "") + error.to_string();
  if (!first_) first_ = std::move(error);
}

Result<void> ErrorList::result() const {
  if (!first_) return {};
  if (count_ == 1) return *first_;
  const std::string more =
      count_ > kMostSentences ? fmt::format("; and {} more", count_ - kMostSentences) : "";
  return Error(first_->code(), first_->reason().data(), sentences_ + more, first_->origin());
}

}  // namespace cairn
