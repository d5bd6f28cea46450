// SPDX-License-Identifier: Apache-2.0
// Processes that meet by what their program brings: a board on which keys have bytes for as long as
// the job runs, such as the key-value stores of JAX and PyTorch.
//
//   verdict-<call>   put by rank 0: how the call ended
//   rank-<r>-<call>  put by rank r: its message to rank 0
//   alarm-<call>     put by any rank: the last that gives up in the call, or before it
//
// A call that is over for everybody is needed no more: who is in call n removes what it put for
// call n - 2. A call costs a rank one put and one removal, and a look at a key of few bytes each
// time that it looks; rank 0 looks for each rank.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cairn/base/clock.h"
#include "cairn/coord/coordinator.h"

namespace cairn::coord {

/// One process's view. What rank 0 puts is for all, what the others put for rank 0; a board may
/// show it to nobody else, and only once. Waits for nobody. Threading: confined.
class Board {
 public:
  virtual ~Board() = default;

  /// Takes the place of what is there.
  virtual Result<void> put(const std::string& key, ByteSpan bytes) = 0;
  /// Nothing: it is not there yet.
  virtual Result<std::optional<Buffer>> find(const std::string& key) = 0;
  virtual Result<void> remove(const std::string& key) = 0;
  /// Has what was put left? If not, it leaves only while the board is in use.
  virtual Result<bool> settled() { return true; }
};

/// The board is empty, and of this job alone. Waits for nobody. `clock` must outlive the
/// coordinator, and deadlines must be its. `invalid_argument` (coord/bad-rank). In a call,
/// `corrupt` (coord/bad-message), and as the board says.
Result<std::unique_ptr<Coordinator>> open_board(std::unique_ptr<Board> board, Place place,
                                                Clock& clock = system_clock(),
                                                Interrupted interrupted = {});

}  // namespace cairn::coord
