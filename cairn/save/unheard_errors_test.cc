// SPDX-License-Identifier: Apache-2.0
#include "cairn/save/unheard_errors.h"

#include <cstdio>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cairn/async/background.h"
#include "cairn/save/save_async.h"
#include "cairn/save/save_internals.h"
#include "cairn/testing/gate.h"
#include "cairn/testing/must.h"
#include "cairn/testing/temp_dir.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using testing::must;
using ::testing::Not;

// Ends of programs: the tests of each run in a process of their own.
class UnheardErrors : public ::testing::Test {
 protected:
  UnheardErrors() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  SaveHandle begin_failing(const std::shared_ptr<Runtime>& runtime, bool waited_for = false) const {
    const Tree tree = Tree::dict({{"w", must(Array::zeros(DType::kInt8, {5}))}});
    SaveInternals internals{.waited_for = waited_for};
    internals.guard = []() -> Result<std::shared_ptr<void>> {
      return Error(Code::kFailedPrecondition, "run/taken-over", "not you");
    };
    return must(save_async({{"", tree}}, dir_ / "c", {}, runtime, &internals));
  }

  testing::TempDir dir_;
};

TEST_F(UnheardErrors, AreLoggedAtOnceAndFailTheProgram) {
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EXIT(
      {
        std::atexit([] { std::fputs("the others run\n", stderr); });
        begin_failing(runtime);
        wait_for_background();
        std::fputs("the end\n", stderr);
        std::exit(0);
      },
      ExitedWithCode(1),
      "not you \\[save/failed\\]\nthe end\n.*forget.*not you \\[save/unheard\\]\nthe others "
      "run\n$");
}

TEST_F(UnheardErrors, OfSavesThatAreOnTheirWayAtTheEndCountToo) {
  EXPECT_EXIT(
      {
        testing::Gate gate;
        const auto slow =
            std::make_shared<Runtime>(RuntimeOptions{.file_system = gate.file_system()});
        static testing::Gate* the_gate = &gate;
        begin_failing(slow);
        std::atexit([] { the_gate->open(); });
        std::exit(0);
      },
      ExitedWithCode(1), "save/unheard");
}

TEST_F(UnheardErrors, LeaveAnotherExitStatusAsItIs) {
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EXIT((begin_failing(runtime), std::exit(7)), ExitedWithCode(7), "save/unheard");
}

TEST_F(UnheardErrors, AreNoneOnceSomebodyAsked) {
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EXIT(
      {
        EXPECT_FALSE(begin_failing(runtime).wait());
        std::exit(0);
      },
      ExitedWithCode(0), AllOf(HasSubstr("save/failed"), Not(HasSubstr("save/unheard"))));
}

TEST_F(UnheardErrors, AreNoneOfSavesThatWereForgotten) {
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EXIT((begin_failing(runtime).forget(), std::exit(0)), ExitedWithCode(0),
              AllOf(HasSubstr("save/failed"), Not(HasSubstr("save/unheard"))));
}

TEST_F(UnheardErrors, AreNotLoggedWhereTheCallerWaits) {
  const auto runtime = std::make_shared<Runtime>();
  EXPECT_EXIT((void(begin_failing(runtime, true).wait().has_value()), std::exit(0)),
              ExitedWithCode(0), Not(HasSubstr("save/")));
}

TEST_F(UnheardErrors, GoToTheLogThatTheProgramGave) {
  std::vector<std::string> events;
  const auto runtime = std::make_shared<Runtime>(
      RuntimeOptions{.log = [&](const LogEntry& entry) { events.emplace_back(entry.event); }});
  EXPECT_FALSE(begin_failing(runtime).wait());
  EXPECT_EQ(events, std::vector<std::string>{"save/failed"});
}

}  // namespace
}  // namespace cairn
