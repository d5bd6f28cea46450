// SPDX-License-Identifier: Apache-2.0
// A process that saves and loads until it is killed, stopped, or the disk goes away under it. What
// to do comes line by line on standard input, answers go to standard output:
//
//   {"do":"save","path":P,"number":N}   one checkpoint: {"saved":N}; also "prefix", and
//                                       "operation":n,"signal":s: sends itself the signal before
//                                       that file operation. Who waits gives up at once
//   {"do":"load","path":P}              {"number":N} if all is right; also "prefix"
//   {"do":"train","base":B,"from":N}    numbers from N on, for ever, as a job that owns the run: 2k
//                                       is a new checkpoint run-k, 2k + 1 replaces it. Says
//                                       {"begun":N} and {"saved":N}
//   {"do":"own","base":B,"number":N}    one of these, and the run stays its own: the next is of the
//                                       same job; also "take_over", "operation", "signal"
//   {"do":"latest","base":B}            {"number":N}, whole, or what is wrong
//   {"do":"follow","base":B}            the same for ever; says each number once
//
// All know "elements", the size of a state. Runs keep the last three, or "keep", or what "quota"
// (bytes of all) and "floor" (bytes free) leave.
//
// With an argument, each file operation writes a byte to that file descriptor.
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include <sys/prctl.h>
#include <unistd.h>

#include "cairn/manager/checkpointer.h"
#include "cairn/save/save.h"
#include "cairn/storage/local/posix.h"
#include "cairn/testing/interposed_file_system.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/random_tree.h"
#include "cairn/tree/flatten.h"
#include "tests/orders.h"

namespace {

using namespace cairn;
using testing::number_of;
using testing::say;
using testing::text_of;

int ticks_to = -1;

/// The machine's file system, which tells of every operation, and may strike at one.
std::unique_ptr<storage::FileSystem> watched(const Json& order) {
  const std::int64_t when = number_of(order, "operation", -1);
  const auto signal = static_cast<int>(number_of(order, "signal", SIGKILL));
  return testing::interpose(storage::posix_file_system(), [=](std::size_t operation) {
    if (ticks_to >= 0 && ::write(ticks_to, ".", 1) != 1) std::abort();
    if (static_cast<std::int64_t>(operation) != when) return;
    say(Json::Object{{"struck", when}});
    ::kill(::getpid(), signal);
  });
}

/// The number says every bit.
Tree state_of(std::int64_t number, const Json& order) {
  const std::int64_t elements = number_of(order, "elements", 100);
  testing::Random random(static_cast<std::uint64_t>(number));
  std::vector<std::pair<Key, Tree>> leaves{{"number", Value(Integer(number))}};
  for (const char* const name : {"a", "b"})
    leaves.emplace_back(name, testing::random_array(random, DType::kInt32, {elements}));
  return Tree::dict(std::move(leaves));
}

Result<Json> save(const Json& order) {
  const auto files = watched(order);
  testing::ManualClock clock;
  Runtime runtime({.threads = 1, .file_system = files.get(), .clock = &clock});
  const std::int64_t number = number_of(order, "number", 0);
  SaveOptions options;
  options.step = number;
  CAIRN_TRY(save_tree(state_of(number, order), text_of(order, "path"), options, runtime,
                      text_of(order, "prefix")));
  return Json(Json::Object{{"saved", number}});
}

/// A job that owns a run, and what it stands on.
struct Job {
  std::unique_ptr<storage::FileSystem> files;
  std::unique_ptr<testing::ManualClock> clock;
  std::shared_ptr<Runtime> runtime;
  std::unique_ptr<Checkpointer> run;
};

RetentionRules rules_of(const Json& order) {
  RetentionRules rules;
  if (order.find("quota") != nullptr) {
    rules.max_bytes = static_cast<std::uint64_t>(number_of(order, "quota", 0));
  } else if (order.find("floor") != nullptr) {
    rules.min_free_bytes = static_cast<std::uint64_t>(number_of(order, "floor", 0));
  } else {
    rules.keep_last_n = number_of(order, "keep", 3);
  }
  return rules;
}

Result<Job> begin_job(const Json& order, bool time_passes) {
  Job job;
  job.files = watched(order);
  if (!time_passes) job.clock = std::make_unique<testing::ManualClock>();
  job.runtime = std::make_shared<Runtime>(
      RuntimeOptions{.threads = 1, .file_system = job.files.get(), .clock = job.clock.get()});
  CheckpointerOptions options{.base_path = text_of(order, "base")};
  options.retention = rules_of(order);
  options.watch_requests = false;
  options.take_over = order.find("take_over") != nullptr;
  options.manager =
      std::make_shared<AsyncCheckpointManager>(AsyncManagerOptions{.blocking = true}, job.runtime);
  CAIRN_TRY_ASSIGN(job.run, Checkpointer::make(std::move(options), job.runtime));
  return job;
}

Result<void> save_number(Job& job, std::int64_t number, const Json& order) {
  const std::int64_t step = number / 2;
  CAIRN_TRY_ASSIGN(const SaveHandle saved,
                   job.run->save_checkpoint(state_of(number, order), "run-" + std::to_string(step),
                                            {.save = {.step = step}}));
  CAIRN_TRY(saved.wait());
  return {};
}

Result<Json> train(const Json& order) {
  CAIRN_TRY_ASSIGN(Job job, begin_job(order, true));
  for (std::int64_t number = number_of(order, "from", 0);; ++number) {
    say(Json::Object{{"begun", number}});
    CAIRN_TRY(save_number(job, number, order));
    say(Json::Object{{"saved", number}});
  }
}

std::optional<Job> owned;  // until the process ends

Result<Json> own(const Json& order) {
  if (!owned) {
    CAIRN_TRY_ASSIGN(owned, begin_job(order, false));
  }
  const std::int64_t number = number_of(order, "number", 0);
  CAIRN_TRY(save_number(*owned, number, order));
  CAIRN_TRY(owned->run->wait_until_finished());
  return Json(Json::Object{{"saved", number}});
}

/// The number of a state that was loaded, if every bit of it is right.
Result<std::int64_t> number_in(const Loaded& loaded, const Json& order) {
  CAIRN_TRY_ASSIGN(const auto leaves, flatten(loaded.tree));
  for (const NamedLeaf& leaf : leaves) {
    if (leaf.path.text() != "number") continue;
    const auto number = std::get<Integer>(std::get<Value>(leaf.leaf)).to_int64().value_or(-1);
    const std::string wrong = testing::difference(loaded.tree, state_of(number, order));
    if (wrong.empty()) return number;
    return Error(Code::kCorrupt, "probe/mixture",
                 "not what was saved as " + std::to_string(number) + ": " + wrong);
  }
  return Error(Code::kCorrupt, "probe/mixture", "it has no number");
}

Result<std::int64_t> latest_number(const Job& job, const Json& order) {
  CAIRN_TRY_ASSIGN(const Loaded loaded, job.run->load_checkpoint());
  return number_in(loaded, order);
}

Result<Json> load(const Json& order) {
  Runtime runtime({.threads = 1});
  CAIRN_TRY_ASSIGN(const Loaded loaded, cairn::load(text_of(order, "path"),
                                                    {.prefix = text_of(order, "prefix")}, runtime));
  CAIRN_TRY_ASSIGN(const std::int64_t number, number_in(loaded, order));
  return Json(Json::Object{{"number", number}});
}

Result<Json> latest(const Json& order) {
  CAIRN_TRY_ASSIGN(const Job job, begin_job(order, true));
  CAIRN_TRY_ASSIGN(const std::int64_t number, latest_number(job, order));
  return Json(Json::Object{{"number", number}});
}

Result<Json> follow(const Json& order) {
  CAIRN_TRY_ASSIGN(const Job job, begin_job(order, true));
  for (std::int64_t last = -1;;) {
    CAIRN_TRY_ASSIGN(const std::int64_t number, latest_number(job, order));
    if (number != last) say(Json::Object{{"number", number}});
    last = number;
  }
}

Result<Json> act(const Json& order) {
  constexpr std::pair<std::string_view, Result<Json> (*)(const Json&)> kOrders[] = {
      {"save", save}, {"load", load},     {"train", train},
      {"own", own},   {"latest", latest}, {"follow", follow}};
  for (const auto& [name, function] : kOrders) {
    if (text_of(order, "do") == name) return function(order);
  }
  return Error(Code::kInvalidArgument, "probe/order", "no such order");
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left of a test that was killed, even stopped
  if (argc > 1) ticks_to = std::atoi(argv[1]);
  for (std::string line; std::getline(std::cin, line);) say(testing::obey(line, act));
  return 0;
}
