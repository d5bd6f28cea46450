#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Cairn does, as a story: save, look, be killed, resume, be damaged, find it, mend it, compare.
# examples/demo/run.sh [BIN]: the folder of the programs, build/bin if it is not given.
set -euo pipefail
exec 2>&1
PATH=$(realpath "${1:-$(dirname "$0")/../../build/bin}"):$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\e[1m' plain=$'\e[0m'; fi
chapter=0
say() { printf '\n%s%d. %s%s\n\n' "$bold" $((++chapter)) "$*" "$plain"; }
run() {
  printf '$ %s\n' "$*"
  "$@"
}
# finds COMMAND...: the same for a command that must find damage.
finds() {
  local status=0
  run "$@" || status=$?
  printf '(exit status %d)\n' "$status"
  [ "$status" -eq 1 ]
}

say 'A training job saves its state: a small llama in bfloat16, as zarr v2 and as safetensors.'
run cairn_demo_train job 100

say 'What is in it? Only metadata is read.'
run cairn show job/zarr2/run-100 --depth 3

say 'The job goes on. In the middle of its next save it is killed with kill -9.'
mkfifo lines
printf '$ cairn_demo_train job 200 & kill -9 $!\n'
cairn_demo_train job 200 --wait-halfway >lines &
trainer=$!
while read -r line && [ "$line" != halfway ]; do printf '%s\n' "$line"; done <lines
kill -9 $trainer
status=0
wait $trainer 2>/dev/null || status=$?
printf '(exit status %d)\n' "$status"
[ "$status" -eq 137 ]
run cairn ls job/zarr2

say 'What was saved before is whole, and the job resumes from there.'
run cairn verify job/zarr2/run-100
run cairn_demo_train job 200

leaf=layers.2.mlp.up
file=job/zarr2/run-200/model/${leaf//.//}/0.0
say "A disk loses one bit of $leaf. Verifying names the leaf and the chunk."
byte=$(od -An -tu1 -j77777 -N1 "$file")
poke() { printf "\\x$(printf %02x "$1")" | dd of="$file" bs=1 seek=77777 conv=notrunc status=none; }
poke $((byte ^ 1))
finds cairn verify job/zarr2/run-200

say 'Reading never gives a wrong number; what is whole still comes.'
finds cairn stats job/zarr2/run-200 $leaf
run cairn stats job/zarr2/run-200 layers.2.mlp.down

say 'The bit comes back, and all is well again.'
poke "$byte"
run cairn verify job/zarr2/run-200

say 'Two formats, one state: are they equal, number by number?'
run cairn diff job/zarr2/run-200 job/safetensors/run-200

printf '\nThat was all. `cairn --help` has the rest.\n'
