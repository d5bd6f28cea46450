// SPDX-License-Identifier: Apache-2.0
#include "cairn/python/coordinators.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "cairn/async/mutex.h"
#include "cairn/coord/board.h"
#include "cairn/coord/open.h"
#include "cairn/coord/refusals.h"
#include "cairn/python/bindings.h"

namespace cairn::python {

namespace {

/// A board written in Python. It is used by the thread that waits in apart(); where that was
/// interrupted, aside, if the board says `any_thread`.
class PythonBoard final : public coord::Board {
 public:
  explicit PythonBoard(const nb::object& board)
      : any_thread_(nb::cast<bool>(board.attr("any_thread"))), board_(keep(board)) {}

  Result<void> put(const std::string& key, ByteSpan bytes) override {
    return ask([&](const nb::handle& board) {
      board.attr("put")(key, nb::bytes(bytes.data(), bytes.size()));
    });
  }
  Result<std::optional<Buffer>> find(const std::string& key) override {
    std::optional<Buffer> note;
    CAIRN_TRY(ask([&](const nb::handle& board) {
      const nb::object found = board.attr("find")(key);
      if (found.is_none()) return;
      const auto bytes = nb::cast<nb::bytes>(found);
      note = Buffer::own(std::string(bytes.c_str(), bytes.size()));
    }));
    return note;
  }
  Result<void> remove(const std::string& key) override {
    return ask([&](const nb::handle& board) { board.attr("remove")(key); });
  }
  Result<bool> settled() override {
    bool quiet = true;
    CAIRN_TRY(
        ask([&](const nb::handle& board) { quiet = nb::cast<bool>(board.attr("settled")()); }));
    return quiet;
  }

 private:
  static Error interrupted() {
    return Error(Code::kCancelled, "python/interrupted", "it was interrupted");
  }

  using Question = std::function<void(const nb::handle& board)>;

  // What the board raises is an error of this rank, of which all hear; not of the call alone.
  Result<void> ask(const Question& question) {
    Result<void> answer;
    const auto errand = [&] {
      try {
        question(object_of(board_));
      } catch (const nb::python_error& raised) {
        answer = Error(Code::kFailedPrecondition, "python/board", raised.what());
        if (raised.matches(PyExc_Exception)) return;
        answer = interrupted();
        throw;  // Ctrl-C: apart() throws it again
      } catch (const std::exception& error) {
        answer = Error(Code::kFailedPrecondition, "python/board", error.what());
      }
    };
    if (!caller_is_gone() || !any_thread_) {
      if (!in_caller(errand) && answer) return interrupted();
    } else if (Py_IsInitialized()) {
      const Acquired acquired;
      errand();
    }
    return answer;
  }

  const bool any_thread_;
  const std::shared_ptr<const void> board_;
};

/// Python's threads take turns.
class InTurn final : public coord::Coordinator {
 public:
  explicit InTurn(std::unique_ptr<Coordinator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int count() const override { return inner_->count(); }
  Result<void> barrier(std::string_view phase, Deadline deadline) override {
    MutexLock lock(mutex_);
    return inner_->barrier(phase, deadline);
  }
  Result<Buffer> broadcast(ByteSpan bytes, std::string_view phase, Deadline deadline) override {
    MutexLock lock(mutex_);
    return inner_->broadcast(bytes, phase, deadline);
  }
  Result<std::vector<Buffer>> gather(ByteSpan bytes, std::string_view phase,
                                     Deadline deadline) override {
    MutexLock lock(mutex_);
    return inner_->gather(bytes, phase, deadline);
  }

 private:
  Mutex mutex_;
  const std::unique_ptr<Coordinator> inner_;
};

struct HeldCoordinator {
  explicit HeldCoordinator(std::unique_ptr<coord::Coordinator> inner)
      : it(std::make_shared<InTurn>(std::move(inner))) {}
  std::shared_ptr<coord::Coordinator> it;
};

HeldCoordinator on_board(const nb::object& board, int rank, int count) {
  auto python = std::make_unique<PythonBoard>(board);
  return HeldCoordinator(value_of(
      coord::open_board(std::move(python), {rank, count}, system_clock(), &caller_is_gone)));
}

HeldCoordinator in_directory(const std::string& directory,
                             const std::optional<std::pair<int, int>>& place) {
  coord::OpenCoordinatorOptions options{.rendezvous = directory, .interrupted = &caller_is_gone};
  if (place) options.place = {place->first, place->second};
  return HeldCoordinator(value_of(coord::open_coordinator(options)));
}

}  // namespace

Failure other_ranks(const std::string& sentence) {
  return Failure(Error(Code::kFailedPrecondition, "python/other-ranks", sentence));
}

std::shared_ptr<coord::Coordinator> coordinator_of(const nb::handle& object) {
  return nb::cast<const HeldCoordinator&>(object).it;
}

void bind_coordinators(nb::module_& module) {
  module.def("refuse_rank", [](int rank) { throw Failure(coord::rank_taken(rank)); });
  module.def("refuse_mpi_thread", [] { throw Failure(coord::wrong_mpi_thread()); });
  module.def("refuse_other_ranks",
             [](const std::string& sentence) { throw other_ranks(sentence); });
  nb::class_<HeldCoordinator>(module, "Coordinator")
      .def_static("on_board", &on_board, nb::arg("board"), nb::arg("rank"), nb::arg("count"))
      .def_static("in_directory", &in_directory, nb::arg("directory"), nb::arg("place").none())
      .def_prop_ro("rank", [](const HeldCoordinator& held) { return held.it->rank(); })
      .def_prop_ro("count", [](const HeldCoordinator& held) { return held.it->count(); });
}

}  // namespace cairn::python
