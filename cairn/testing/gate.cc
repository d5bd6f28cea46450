// SPDX-License-Identifier: Apache-2.0
#include "cairn/testing/gate.h"

#include "cairn/async/background.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"

namespace cairn::testing {

Gate::Gate()
    : file_system_(interpose(storage::posix_file_system(), [this](std::size_t) {
        if (is_background_thread()) opened_.wait();
      })) {}

Gate::~Gate() {
  open();  // a test that failed must still end
  wait_for_background();
}

void Gate::open() {
  if (!is_open_) opened_.count_down();
  is_open_ = true;
}

}  // namespace cairn::testing
