// SPDX-License-Identifier: Apache-2.0
#include "cairn/load/load_together.h"

#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cairn/base/sha256.h"
#include "cairn/coord/told_error.h"
#include "cairn/layout/open_checkpoint.h"

namespace cairn {

namespace {

/// Arrays up to this size that all ranks hold whole are read by rank 0 and told to the others.
constexpr std::uint64_t kSmallArray = 64 * kKiB;
/// In messages of at most this size.
constexpr std::uint64_t kMessageBytes = 4 * kMiB;
constexpr const char* kNotOpened = "error";

class JointLoad {
 public:
  JointLoad(const std::string& path, const LoadOptions& options, Runtime& runtime)
      : path_(path),
        options_(options),
        runtime_(runtime),
        ranks_(*runtime.coordinator()),
        deadline_(Deadline::in(options.timeout)) {}  // coordinators go by the machine's clock

  Result<Loaded> run() {
    for (int reopened = 0;; ++reopened) {
      auto opened = open_checkpoint(path_, runtime_);
      CAIRN_TRY_ASSIGN(const std::string state, broadcast(state_of(opened), "load: open"));
      // If rank 0 could not open it, its error is everybody's.
      const bool same = state == kNotOpened || state == state_of(opened);
      CAIRN_TRY_ASSIGN(bool again, agree(opened ? Said{.again = !same} : said(opened)));
      if (!again) {
        shared_ = false;
        auto loaded = load_opened(*opened, options_, runtime_,
                                  [&](const OpenedPrefix& prefix, const LoadWork& work,
                                      const LoadOptions&) { return read(prefix, work); });
        Said mine = said(loaded);
        // Who failed before it came to the part that all do together does that part too.
        if (!shared_) CAIRN_TRY(share_small({}, ""));
        mine.again = !loaded && loaded.error().reason() == kReplaced;
        CAIRN_TRY_ASSIGN(again, agree(mine));
        if (!again) return loaded;
      }
      if (reopened == kMostReopenings) {
        return Error(Code::kUnavailable, "load/keeps-changing",
                     fmt::format("{} is replaced faster than {} ranks can open it", path_,
                                 runtime_.ranks()));
      }
    }
  }

 private:
  /// What one rank says of a step.
  struct Said {
    bool again = false;
    std::optional<Error> failure = {};
  };

  template <typename T>
  static Said said(const Result<T>& result) {
    return result ? Said{} : Said{.again = false, .failure = result.error()};
  }

  // By which ranks know that they opened the same thing.
  static std::string state_of(const Result<Checkpoint>& checkpoint) {
    if (!checkpoint) return kNotOpened;
    Sha256 sha;
    sha.update(as_bytes(checkpoint->version));
    for (const OpenedPrefix& prefix : checkpoint->prefixes) {
      sha.update(as_bytes(prefix.name + "\n" + prefix.manifest.attempt + "\n"));
      sha.update(as_bytes(std::to_string(prefix.manifest.arrays.size())));
    }
    return sha.hex();
  }

  // Rank 0's text, on every rank.
  Result<std::string> broadcast(const std::string& text, const char* phase) {
    CAIRN_TRY_ASSIGN(const Buffer heard, ranks_.broadcast(as_bytes(text), phase, deadline_));
    return std::string(as_text(heard.bytes()));
  }

  // Everybody says how it went: true if all do it again, an error if one failed for good.
  Result<bool> agree(const Said& mine) {
    const Json json(Json::Object{
        {"again", mine.again},
        {"failure", mine.failure && !mine.again ? error_to_json(*mine.failure) : Json()}});
    CAIRN_TRY_ASSIGN(const auto all,
                     ranks_.gather(as_bytes(dump_json(json)), "load: agree", deadline_));
    CAIRN_TRY_ASSIGN(const std::string heard,
                     broadcast(all.empty() ? "" : sum_up(all), "load: go on"));
    const auto said = parse_json(heard, {});
    const Json* failure = said ? said->find("failure") : nullptr;
    const Json* again = said ? said->find("again") : nullptr;
    if (failure == nullptr || again == nullptr || !again->boolean())
      return Error(Code::kInternal, "load/bad-message", "rank 0 sent an unknown message");
    if (!failure->is_null()) {
      if (auto error = error_from_json(*failure)) return std::move(*error);
    }
    return *again->boolean();
  }

  // The first failure, if nobody saw a commit go on since; a rank that did says so instead of one.
  static std::string sum_up(const std::vector<Buffer>& all) {
    bool again = false;
    std::optional<Error> failure;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const auto json = parse_json(as_text(all[rank].bytes()), {});
      const Json* wants = json ? json->find("again") : nullptr;
      const Json* failed = json ? json->find("failure") : nullptr;
      again |= wants != nullptr && wants->boolean().value_or(false);
      if (failure || failed == nullptr || failed->is_null()) continue;
      failure = error_from_json(*failed);
      if (failure) failure = std::move(*failure).in(fmt::format("rank {}", rank));
    }
    return dump_json(Json::Object{
        {"again", again}, {"failure", failure && !again ? error_to_json(*failure) : Json()}});
  }

  Result<void> read(const OpenedPrefix& prefix, const LoadWork& work) {
    LoadWork own;
    LoadWork small;
    Sha256 leaves;
    for (std::size_t n = 0; n < work.which.size(); ++n) {
      const ShardedArray& array = work.destinations[n];
      const bool told = array.whole() && is_told_by_rank_0(array.sharding(), array.shape(),
                                                           array.nbytes(), runtime_.ranks());
      LoadWork& to = told ? small : own;
      to.which.push_back(work.which[n]);
      to.destinations.push_back(array);
      if (!told) continue;
      leaves.update(
          as_bytes(fmt::format("{} {} {}\n", prefix.manifest.arrays[work.which[n]].path.text(),
                               dtype_name(array.dtype()), to_string(array.shape()))));
    }
    Result<void> done;
    if (runtime_.rank() == 0) done = read_arrays(prefix, small, options_, runtime_);
    const auto told = share_small(small.destinations, leaves.hex());
    CAIRN_TRY(done);
    CAIRN_TRY(told);
    return read_arrays(prefix, own, options_, runtime_);
  }

  // Rank 0's bytes of these arrays, in messages that hold many. `leaves` says which they are.
  Result<void> share_small(const std::vector<ShardedArray>& arrays, const std::string& leaves) {
    shared_ = true;
    std::string bytes;
    std::uint64_t size = 0;
    for (const ShardedArray& array : arrays) {
      size += array.nbytes();
      if (runtime_.rank() == 0) bytes += as_text(array.array().bytes());
    }
    CAIRN_TRY_ASSIGN(const std::string theirs,
                     broadcast(fmt::format("{} {}", size, leaves), "load: small leaves"));
    std::uint64_t all = 0;
    std::from_chars(theirs.data(), theirs.data() + theirs.size(), all);
    std::string heard;
    for (std::uint64_t at = 0; at < all; at += kMessageBytes) {
      CAIRN_TRY_ASSIGN(
          const std::string part,
          broadcast(bytes.empty() ? "" : bytes.substr(at, kMessageBytes), "load: small leaves"));
      heard += part;
    }
    if (leaves.empty()) return {};
    if (theirs != fmt::format("{} {}", size, leaves) || heard.size() != size) {
      return Error(Code::kFailedPrecondition, "load/ranks-disagree",
                   "this rank and rank 0 do not load the same leaves");
    }
    std::size_t at = 0;
    for (const ShardedArray& array : arrays) {
      for (const Shard& shard : array.shards()) {
        Array to = shard.data;
        std::memcpy(to.mutable_data(), heard.data() + at, to.nbytes());
      }
      at += array.nbytes();
    }
    return {};
  }

  const std::string& path_;
  const LoadOptions& options_;
  Runtime& runtime_;
  coord::Coordinator& ranks_;
  const Deadline deadline_;
  bool shared_ = false;
};

}  // namespace

bool is_told_by_rank_0(const Sharding& sharding, const Shape& shape, std::uint64_t bytes,
                       int ranks) {
  if (bytes > kSmallArray) return false;
  if (sharding == Sharding()) return true;
  const DeviceGroups& groups = sharding.groups(shape);
  return groups.size() == 1 && groups.ranks(0)->size() == static_cast<std::size_t>(ranks);
}

Result<Loaded> load_together(const std::string& path, const LoadOptions& options,
                             Runtime& runtime) {
  return JointLoad(path, options, runtime).run();
}

}  // namespace cairn
