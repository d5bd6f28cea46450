#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Cairn does, as a story: save, look, be killed, resume, be damaged, find it, convert.
# examples/demo/run.sh [BIN]: the folder of the programs, build/bin if it is not given.
set -euo pipefail
exec 2>&1
PATH=$(realpath "${1:-$(dirname "$0")/../../build/bin}"):$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
say() { printf '\n%s-- %s%s\n' "$bold" "$*" "$plain"; }
run() {
  printf '$ %s\n' "$*"
  "$@"
}
# finds COMMAND...: the same for a command that must find damage or a difference.
finds() {
  local status=0
  run "$@" || status=$?
  printf '(exit status %d)\n' "$status"
  [ "$status" -eq 1 ]
}

say 'A training job saves its state twice: model and optimizer, in one act.'
run cairn_demo_train run 100 512
run cairn_demo_train run 200 512
run cairn ls run

say 'What is in it? Only metadata is read.'
run cairn show run/run-200 --depth 2

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

chunk=run/run-300/model/layers/2/kernel/0.0
say "A disk loses one bit of $chunk. Verifying names the place."
byte=$(od -An -tu1 -j77777 -N1 $chunk)
poke() { printf "\\x$(printf %02x "$1")" | dd of=$chunk bs=1 seek=77777 conv=notrunc status=none; }
poke $((byte ^ 1))
finds cairn verify run/run-300

say 'Reading never gives a wrong number; what is whole still comes.'
finds cairn stats run/run-300 layers.2
run cairn stats run/run-300 layers.3

say 'The bit comes back. In safetensors for others, in equal parts: the same numbers?'
poke "$byte"
run cairn convert run/run-300 parts --shard-size 2MiB
run cairn diff run/run-300 parts

say 'One file of half the size, for somebody who wants bfloat16.'
run cairn convert run/run-300 model.safetensors --prefix model --dtype bfloat16

printf '\nThat was all. `cairn --help` has the rest.\n'
