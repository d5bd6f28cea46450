// SPDX-License-Identifier: Apache-2.0
#include "cairn/runtime/in_flight.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "cairn/async/background.h"
#include "cairn/async/mutex.h"
#include "cairn/async/per_process.h"
#include "cairn/base/uri.h"

namespace cairn {

namespace {

/// One name for one place: absolute, without "." and "..", links followed as far as they exist.
/// Empty for what is no path: nothing can be saved there.
std::string place_of(const std::string& path) {
  const auto uri = parse_uri(path);
  if (!uri) return {};
  if (uri->scheme != "file") return uri->to_string();
  std::error_code error;
  // By itself it leaves a path relative that does not exist at all.
  const auto whole = std::filesystem::absolute(uri->path, error);
  const auto place = std::filesystem::weakly_canonical(whole, error);
  std::string text = error ? uri->path : place.string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_within(std::string_view inner, std::string_view outer) {
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || outer.ends_with('/') || inner[outer.size()] == '/';
}

class Places {
 public:
  static Places& of_this_process() { return PerProcess<Places>::get(); }

  void begin(const std::string& place, int rank) {
    MutexLock lock(mutex_);
    while (is_busy(place, rank)) changed_.wait(mutex_);
    places_.emplace(rank, place);
  }

  void end(const std::string& place, int rank) {
    MutexLock lock(mutex_);
    places_.erase({rank, place});
    changed_.notify_all();
  }

  void wait(const std::string& place, int rank) {
    MutexLock lock(mutex_);
    while (is_busy(place, rank)) changed_.wait(mutex_);
  }

  std::vector<std::string> all() const {
    MutexLock lock(mutex_);
    std::set<std::string> places;
    for (const auto& [rank, place] : places_) places.insert(place);
    return {places.begin(), places.end()};
  }

 private:
  bool is_busy(const std::string& place, int rank) const CAIRN_REQUIRES(mutex_) {
    return std::ranges::any_of(places_, [&](const auto& other) {
      return other.first == rank &&
             (is_within(place, other.second) || is_within(other.second, place));
    });
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::set<std::pair<int, std::string>> places_ CAIRN_GUARDED_BY(mutex_);
};

}  // namespace

InFlight::InFlight(const std::string& path, int rank) : place_(place_of(path)), rank_(rank) {
  if (!place_.empty()) Places::of_this_process().begin(place_, rank_);
}

InFlight::InFlight(InFlight&& other) noexcept
    : place_(std::exchange(other.place_, {})), rank_(other.rank_) {}

InFlight::~InFlight() { landed(); }

void InFlight::landed() {
  if (!place_.empty()) Places::of_this_process().end(std::exchange(place_, {}), rank_);
}

std::vector<std::string> places_in_flight() { return Places::of_this_process().all(); }

void wait_for_saves(const std::string& path, int rank) {
  if (is_background_thread() || places_in_flight().empty()) return;
  const std::string place = place_of(path);
  if (!place.empty()) Places::of_this_process().wait(place, rank);
}

}  // namespace cairn
