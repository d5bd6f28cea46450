// SPDX-License-Identifier: Apache-2.0
// Processes that meet through a board of their program: keys that hold bytes for as long as the job
// runs, such as the key-value stores of JAX and PyTorch.
//
//   verdict-<call>   put by rank 0: how the call ended
//   rank-<r>-<call>  put by rank r: its message to rank 0
//   alarm-<call>     put by any rank: the last that gives up in the call, or before it
//
// When a rank is in call n, everyone has finished call n - 2, so it removes what it put for that
// call. A call costs a rank one put, one removal and, each time it polls, one read of a small key;
// rank 0 polls one key for each rank.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// One process's view. Everyone reads what rank 0 puts; rank 0 reads what the others put, and a
/// board may show that to nobody else, and only once. Never blocks. Threading: confined.
class Board {
 public:
  virtual ~Board() = default;

  /// Replaces what is there.
  virtual Result<void> put(const std::string& key, ByteSpan bytes) = 0;
  /// nullopt: not there yet.
  virtual Result<std::optional<Buffer>> find(const std::string& key) = 0;
  virtual Result<void> remove(const std::string& key) = 0;
  /// Has everything that was put been sent? If not, it is sent only while the board is in use.
  virtual Result<bool> settled() { return true; }
};

/// The board must be empty and used by this job alone. Does not block. `clock` must outlive the
/// coordinator, and deadlines must use it. `invalid_argument` (coord/bad-rank). In a call,
/// `corrupt` (coord/bad-message), and errors of the board.
Result<std::unique_ptr<Coordinator>> open_board(std::unique_ptr<Board> board, Place place,
                                                Clock& clock = system_clock(),
                                                Interrupted interrupted = {});

}  // namespace cairn::coord
