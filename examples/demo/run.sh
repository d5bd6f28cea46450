#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Cairn does, as a story: save, look, be killed, resume, be damaged, find it, convert.
# examples/demo/run.sh [BIN]: the folder of the programs, build/bin if it is not given.
set -euo pipefail
cd "$(dirname "$0")/../.."

PATH=$(realpath "${1:-build/bin}"):$PATH
rm -rf build/demo
mkdir -p build/demo
cd build/demo

say() { printf '\n-- %s\n' "$*"; }
run() {
  printf '$ %s\n' "$*"
  "$@"
}

say 'A training job saves its state twice: model and optimizer, in one act.'
run cairn_demo_train run 100 512
run cairn_demo_train run 200 512
run cairn ls run

say 'What is in it? Only metadata is read.'
run cairn show run/run-200 --depth 3

say 'A few numbers of a 1 MiB array: only the blocks that hold them are read.'
run cairn cat run/run-200 model.layers.0.kernel --slice 0:2,0:4

say 'The next save is larger, and in its middle the job is killed with kill -9.'
mkfifo progress
cairn_demo_train run 300 4096 >progress &
job=$!
grep -m 1 saving <progress
kill -9 $job 2>/dev/null || true
wait $job 2>/dev/null || true
run cairn ls run

say 'What was saved before is whole, and the job goes on from there.'
run cairn verify run/run-200
run cairn_demo_train run 300 512

say 'A disk loses a bit. Reading says so, with the place; it never gives a wrong number.'
chunk=run/run-300/model/layers/2/kernel/0.0
printf '\377' | dd of=$chunk bs=1 seek=77777 conv=notrunc status=none
run cairn verify run/run-300 && exit 1

say 'The checkpoint before it, for others: one safetensors file in bfloat16, and equal parts.'
run cairn convert run/run-200 model.safetensors --prefix model --dtype bfloat16
run cairn convert run/run-200 parts --shard-size 2MiB
run cairn diff run/run-200 parts

printf '\nAll of this lies in %s; look around with build/bin/cairn.\n' "$PWD"
