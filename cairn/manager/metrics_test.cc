// SPDX-License-Identifier: Apache-2.0
#include "cairn/manager/metrics.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/manager/checkpointer.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/gate.h"
#include "cairn/testing/manual_clock.h"
#include "cairn/testing/must.h"
#include "cairn/testing/random_tree.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using testing::must;

struct Sample {
  std::string type;
  std::string help;
  std::string run;  ///< the label, unescaped
  double value = 0;
};
using Samples = std::map<std::string, Sample>;

/// The value of a label at `at`, behind the opening quote; `at` moves behind the closing one.
std::string read_label(const std::string& line, std::size_t& at) {
  std::string text;
  for (; at < line.size() && line[at] != '"'; ++at) {
    if (line[at] != '\\') {
      text += line[at];
      continue;
    }
    ++at;
    EXPECT_TRUE(line[at] == '\\' || line[at] == '"' || line[at] == 'n') << line;
    text += line[at] == 'n' ? '\n' : line[at];
  }
  ++at;
  return text;
}

/// Every sample has its HELP and TYPE in front of it, and one label.
Samples parse(const std::string& text) {
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  Samples samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, kind, name;
    if (line.starts_with("# ")) {
      words >> mark >> kind >> name;
      std::string rest;
      std::getline(words >> std::ws, rest);
      (kind == "HELP" ? samples[name].help : samples[name].type) = rest;
      continue;
    }
    std::size_t at = line.find('{');
    name = line.substr(0, at);
    EXPECT_TRUE(samples.contains(name)) << line;
    EXPECT_EQ(line.substr(at, 6), "{run=\"") << line;
    at += 6;
    samples[name].run = read_label(line, at);
    EXPECT_EQ(line.substr(at, 2), "} ") << line;
    samples[name].value = std::stod(line.substr(at + 2));
  }
  for (const auto& [name, sample] : samples) {
    EXPECT_FALSE(sample.help.empty()) << name;
    EXPECT_EQ(sample.type, name.ends_with("_total") ? "counter" : "gauge") << name;
  }
  return samples;
}

TEST(MetricsText, HasAllThatIsKnown) {
  Metrics metrics;
  metrics.saves = 3;
  metrics.failures = 1;
  metrics.in_flight = 2;
  metrics.last_step = 1'000'000'000'000;
  metrics.last_time = must(parse_timestamp("2026-01-01T00:00:00.5Z"));
  metrics.seconds = 12.25;
  metrics.stall_seconds = 0.125;
  metrics.bytes = std::uint64_t{1} << 40;
  metrics.staging_in_use = 7;
  metrics.staging_limit = 8;
  const Samples samples = parse(format_metrics(metrics, "run-a"));
  const std::map<std::string, double> expected{{"cairn_saves_total", 3},
                                               {"cairn_save_failures_total", 1},
                                               {"cairn_saves_in_flight", 2},
                                               {"cairn_last_save_step", 1e12},
                                               {"cairn_last_save_timestamp_seconds", 1767225600.5},
                                               {"cairn_save_seconds", 12.25},
                                               {"cairn_save_stall_seconds", 0.125},
                                               {"cairn_save_bytes", 1099511627776.0},
                                               {"cairn_staging_bytes_in_use", 7},
                                               {"cairn_staging_bytes_limit", 8}};
  ASSERT_EQ(samples.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(samples.contains(name)) << name;
    EXPECT_EQ(samples.at(name).value, value) << name;
    EXPECT_EQ(samples.at(name).run, "run-a");
  }
}

TEST(MetricsText, LeavesOutWhatIsNotKnownYet) {
  const Samples samples = parse(format_metrics({}, "r"));
  EXPECT_EQ(samples.size(), 5u);
  EXPECT_FALSE(samples.contains("cairn_last_save_step"));
}

TEST(MetricsText, AnyNameOfARunComesBack) {
  std::mt19937 random(1);
  const std::string alphabet = "a\"\\\n{}= ,#\t\xc3\xa4";
  for (int i = 0; i < 500; ++i) {
    std::string run;
    for (std::size_t n = random() % 12; n > 0; --n) {
      const std::size_t pick = random() % (alphabet.size() - 1);
      run += pick == alphabet.size() - 2 ? "\xc3\xa4" : alphabet.substr(pick, 1);
    }
    EXPECT_EQ(parse(format_metrics({}, run)).at("cairn_saves_total").run, run);
  }
  EXPECT_EQ(parse(format_metrics({}, "ok\xff\"")).at("cairn_saves_total").run, "ok");
}

class MetricsOfSaves : public ::testing::Test {
 protected:
  ~MetricsOfSaves() override { wait_for_background(); }  // which still uses clock and log
  Result<SaveHandle> save(std::int64_t step, CommitGuard guard = {}) {
    testing::Random random(1);
    const Tree tree = Tree::dict({{"w", testing::random_array(random, DType::kFloat32, {10, 3})}});
    const SaveInternals internals{.guard = std::move(guard)};
    return save_async({{"", tree}}, dir_ / "run/run-" + std::to_string(step), {.step = step},
                      runtime_, &internals);
  }
  Samples samples() const {
    std::ifstream file(path_);
    return parse({std::istreambuf_iterator<char>(file), {}});
  }
  double value(const std::string& name) const {
    const Samples all = samples();
    return all.contains(name) ? all.at(name).value : -1;
  }

  testing::TempDir dir_;
  const std::string path_ = dir_ / "metrics.prom";
  testing::ManualClock clock_;
  testing::Gate gate_;
  std::vector<std::string> logged_;
  std::shared_ptr<Runtime> runtime_ = std::make_shared<Runtime>(
      RuntimeOptions{.threads = 1,
                     .staging_bytes = kMiB,
                     .file_system = gate_.file_system(),
                     .clock = &clock_,
                     .log = [this](const LogEntry& entry) { logged_.emplace_back(entry.event); }});
};

TEST_F(MetricsOfSaves, FollowEachToItsEnd) {
  const auto metrics = MetricsFile::make(path_, dir_ / "run/", runtime_);
  EXPECT_FALSE(std::filesystem::exists(path_));
  const SaveHandle handle = must(save(7));
  metrics->began(handle, 7, milliseconds(250));
  EXPECT_EQ(value("cairn_saves_in_flight"), 1);
  EXPECT_EQ(value("cairn_saves_total"), 0);
  EXPECT_GE(value("cairn_staging_bytes_in_use"), 120);
  EXPECT_EQ(value("cairn_staging_bytes_limit"), static_cast<double>(kMiB));
  EXPECT_EQ(value("cairn_last_save_step"), -1) << "not known";
  clock_.advance(milliseconds(1750));
  gate_.open();
  must(handle.wait());
  EXPECT_EQ(samples().at("cairn_saves_total").run, "run");
  EXPECT_EQ(value("cairn_saves_in_flight"), 0);
  EXPECT_EQ(value("cairn_saves_total"), 1);
  EXPECT_EQ(value("cairn_save_failures_total"), 0);
  EXPECT_EQ(value("cairn_last_save_step"), 7);
  EXPECT_EQ(value("cairn_last_save_timestamp_seconds"), 1767225601.75);
  EXPECT_EQ(value("cairn_save_seconds"), 2);
  EXPECT_EQ(value("cairn_save_stall_seconds"), 0.25);
  EXPECT_EQ(value("cairn_save_bytes"), 120);
  EXPECT_EQ(value("cairn_staging_bytes_in_use"), 0);
  for (const auto& entry : std::filesystem::directory_iterator(dir_.path()))
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
}

TEST_F(MetricsOfSaves, CountFailuresAndKeepWhatTheLastGoodOneSaid) {
  gate_.open();
  const auto metrics = MetricsFile::make(path_, dir_ / "run", runtime_);
  const SaveHandle good = must(save(1));
  metrics->began(good, 1, milliseconds(0));
  must(good.wait());
  const SaveHandle refused = must(save(2, []() -> Result<std::shared_ptr<void>> {
    return Error(Code::kFailedPrecondition, "run/taken-over", "not you");
  }));
  metrics->began(refused, 2, milliseconds(0));
  EXPECT_FALSE(refused.wait());
  metrics->failed();
  EXPECT_EQ(value("cairn_save_failures_total"), 2);
  EXPECT_EQ(value("cairn_saves_total"), 1);
  EXPECT_EQ(value("cairn_saves_in_flight"), 0);
  EXPECT_EQ(value("cairn_last_save_step"), 1);
}

TEST_F(MetricsOfSaves, AreWrittenAfterNobodyElseHoldsThem) {
  auto metrics = MetricsFile::make(path_, dir_ / "run", runtime_);
  const SaveHandle handle = must(save(3));
  metrics->began(handle, 3, milliseconds(0));
  metrics.reset();
  gate_.open();
  must(handle.wait());
  EXPECT_EQ(value("cairn_last_save_step"), 3);
}

TEST_F(MetricsOfSaves, ThatCannotBeWrittenHarmNothingAndAreComplainedOfOnce) {
  gate_.open();
  const auto metrics = MetricsFile::make(dir_ / "not-there/metrics.prom", dir_ / "run", runtime_);
  const SaveHandle handle = must(save(4));
  metrics->began(handle, 4, milliseconds(0));
  must(handle.wait());
  EXPECT_EQ(logged_, std::vector<std::string>{"metrics/not-written"});
}

class MetricsOfARun : public MetricsOfSaves {
 protected:
  MetricsOfARun() { gate_.open(); }
  std::unique_ptr<Checkpointer> make(AsyncManagerOptions options = {}) {
    return must(
        Checkpointer::make({.base_path = dir_ / "run",
                            .step_policies = {{.every = 10}},
                            .manager = std::make_shared<AsyncCheckpointManager>(options, runtime_),
                            .metrics_path = path_},
                           runtime_));
  }
  const Tree tree_ = Tree::dict({{"w", must(Array::zeros(DType::kFloat32, {10, 3}))}});
};

TEST_F(MetricsOfARun, KnowSavesByWhateverCall) {
  auto run = make();
  must(run->on_step(9, tree_));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "there was no save";
  using Call = std::function<void()>;
  const std::pair<double, Call> calls[] = {
      {10, [&] { must(run->on_step(10, tree_)); }},
      {20,
       [&] {
         must(run->on_step(20, {.true_callbacks = {[&](const std::string& path, auto...) {
                                  must(run->manager().save_tree(tree_, path));
                                  return Result<void>();
                                }}}));
       }},
      {31, [&] { must(run->save_checkpoint(tree_, "mine", {.save = {.step = 31}})); }},
      {32, [&] { must(run->save_pytree(tree_, "", {.save = {.step = 32}, .prefix = "model"})); }},
      {-1, [&] { must(run->save_pytree(tree_, dir_ / "other", {.prefix = "model"})); }},
  };
  double saves = 0;
  for (const auto& [step, call] : calls) {
    call();
    must(run->wait_until_finished());
    EXPECT_EQ(value("cairn_last_save_step"), step);
    EXPECT_EQ(value("cairn_saves_total"), ++saves);
    EXPECT_EQ(value("cairn_save_bytes"), step == 20 ? -1 : 120) << "callbacks do not say";
    EXPECT_EQ(samples().at("cairn_saves_total").run, "run");
  }
}

TEST_F(MetricsOfARun, KnowHowLongTheCallerWasKept) {
  auto run = make();
  must(run->on_step(10, [&]() -> Result<std::vector<NamedTree>> {
    clock_.advance(milliseconds(250));
    return std::vector<NamedTree>{{"", tree_}};
  }));
  must(run->wait_until_finished());
  EXPECT_EQ(value("cairn_save_stall_seconds"), 0.25);
  EXPECT_EQ(value("cairn_save_seconds"), 0.25);
}

TEST_F(MetricsOfARun, CountSavesThatCouldNotBegin) {
  auto run = make();
  const auto fails = []() -> Result<std::vector<NamedTree>> {
    return Error(Code::kInternal, "here/no-tree", "no tree");
  };
  EXPECT_FALSE(run->on_step(10, fails));
  EXPECT_EQ(value("cairn_save_failures_total"), 1);
  EXPECT_FALSE(run->save_checkpoint(tree_, "mine", {.save = {.extras = Json("no object")}}));
  EXPECT_EQ(value("cairn_save_failures_total"), 2);
  EXPECT_FALSE(run->save_pytree(tree_, "", {}));
  EXPECT_EQ(value("cairn_save_failures_total"), 3);
  EXPECT_EQ(value("cairn_saves_in_flight"), 0);
}

TEST_F(MetricsOfARun, AreSilentWhereSavesAreSwitchedOff) {
  auto run = make({.enable = false});
  EXPECT_TRUE(must(run->on_step(10, tree_)));
  EXPECT_TRUE(must(run->on_step(20, StepOptions{})));
  must(run->save_checkpoint(tree_, "mine", {.save = {.step = 31}}));
  must(run->save_pytree(tree_, "", {.prefix = "model"}));
  EXPECT_FALSE(must(run->on_step(31, tree_))) << "the policies take note all the same";
  must(run->wait_until_finished());
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path())) << "no owner, no mark, no metrics";
  EXPECT_EQ(logged_, std::vector<std::string>(4, "manager/disabled"));
}

}  // namespace
}  // namespace cairn
