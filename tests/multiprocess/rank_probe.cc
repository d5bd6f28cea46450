// SPDX-License-Identifier: Apache-2.0
// One rank of a job, told what to do line by line:
//
//   RANK=0 WORLD_SIZE=2 cairn_rank_probe DIRECTORY
//   {"rank":0,"count":2}                           <- what it says when it is open
//   ["gather","save 100",60,"my bytes"]            -> operation, phase, seconds, bytes
//   {"got":["my bytes","others"]}                  <- or {"reason":...,"message":...}
#include <string>

#include "cairn/coord/open.h"
#include "tests/orders.h"

namespace {

using cairn::Deadline;
using cairn::Json;
using cairn::Result;
using cairn::coord::Coordinator;
using cairn::testing::describe;
using cairn::testing::say;

Json text_of(const cairn::Buffer& bytes) { return Json(cairn::as_text(bytes.bytes())); }

Result<Json> perform(Coordinator& me, const Json::Array& words) {
  const std::string& operation = *words[0].text();
  const std::string& phase = *words[1].text();
  const auto bytes = cairn::as_bytes(*words[3].text());
  const auto deadline = Deadline::in(std::chrono::seconds(*words[2].integer()));
  Json::Array got;
  if (operation == "barrier") {
    CAIRN_TRY(me.barrier(phase, deadline));
  } else if (operation == "broadcast") {
    CAIRN_TRY_ASSIGN(const auto buffer, me.broadcast(bytes, phase, deadline));
    got.push_back(text_of(buffer));
  } else {
    CAIRN_TRY_ASSIGN(const auto buffers, me.gather(bytes, phase, deadline));
    for (const auto& buffer : buffers) got.push_back(text_of(buffer));
  }
  return Json(Json::Object{{"got", Json(std::move(got))}});
}

}  // namespace

int main(int argc, char** argv) {
  auto me = cairn::coord::open_coordinator({.rendezvous = argc > 1 ? argv[1] : ""});
  if (!me) {
    say(describe(me.error()));
    return 1;
  }
  say(Json::Object{{"rank", (*me)->rank()}, {"count", (*me)->count()}});
  for (std::string line; std::getline(std::cin, line);) {
    const auto words = cairn::parse_json(line);
    if (!words || words->array() == nullptr || words->array()->size() != 4) return 2;
    const auto done = perform(**me, *words->array());
    say(done ? *done : describe(done.error()));
  }
  return 0;
}
