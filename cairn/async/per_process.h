// SPDX-License-Identifier: Apache-2.0
// One object of each kind for the whole process.
#pragma once

#include <pthread.h>
#include <unistd.h>

namespace cairn {

/// The process that made the object. In the child of a fork its threads do not run.
class HomeProcess {
 public:
  bool is_here() const { return ::getpid() == process_; }

 private:
  pid_t process_ = ::getpid();
};

/// One T, made on first use and never destroyed, because threads may outlive everything else. The
/// child of a fork gets a new one: the threads that the old one refers to do not exist there.
/// Threading: get() is safe; T guards itself.
template <typename T>
class PerProcess {
 public:
  static T& get() {
    static const int made = begin();
    static_cast<void>(made);
    return held_->value;
  }

 private:
  struct Held {
    Held* before;  ///< of the parent process: its memory is ours too
    T value = {};
  };
  static int begin() {
    renew();
    return ::pthread_atfork(nullptr, nullptr, renew);
  }
  static void renew() { held_ = new Held{held_}; }
  inline static Held* held_ = nullptr;
};

}  // namespace cairn
