#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Cairn does, as a story: train, be killed in the middle of a save, resume on other ranks, save
# in both formats, be damaged, find it, mend it, compare.
# examples/demo/run.sh [BIN]: the folder of the programs, build/bin if it is not given. A drawing of
# the losses stays beside that folder.
set -euo pipefail
exec 2>&1
bin=$(realpath "${1:-$(dirname "$0")/../../build/bin}")
PATH=$bin:$PATH
drawing=$(dirname "$bin")/demo-losses.svg

work=$(mktemp -d)
ranks=()
trap 'kill -9 "${ranks[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
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
# start COUNT COMMAND...: as the ranks of a job, in the background; their words go into `lines`.
start() {
  local count=$1 rank
  shift
  printf '$ for rank in {0..%d}; do RANK=$rank WORLD_SIZE=%d %s & done\n' $((count - 1)) \
    "$count" "$*"
  for ((rank = 0; rank < count; ++rank)); do
    RANK=$rank WORLD_SIZE=$count "$@" >lines &
    ranks+=($!)
  done
}
mkfifo lines

say 'A small language model is trained by one process. Nobody disturbs it.'
run cairn_training --run straight

say 'The same on four ranks, 2 x 2. Each saves what it holds. In the middle of a save: kill -9.'
start 4 cairn_training --run job --mesh fsdp=2,tp=2 --stall-at 50
stalled=0
while [ $stalled -lt 4 ] && read -r line; do
  if [ "$line" = stalled ]; then stalled=$((stalled + 1)); else printf '%s\n' "$line"; fi
done <lines
[ $stalled -eq 4 ]
printf '$ kill -9 $(jobs -p)\n'
kill -9 "${ranks[@]}"
wait "${ranks[@]}" 2>/dev/null || true
ranks=()
cp job/loss.csv killed.csv
run cairn ls job

say 'What was saved before is whole. Two ranks go on from there, on another mesh.'
start 2 cairn_training --run job --mesh fsdp=2,tp=1
cat lines
wait "${ranks[0]}"
wait "${ranks[1]}"
ranks=()
run cairn show job --depth 1

say 'Are the losses those of the training that nobody disturbed, to the last bit?'
run cmp straight/loss.csv job/loss.csv
printf 'equal  %d losses, digit by digit\n' "$(grep -c '^[0-9]' job/loss.csv)"
run cairn diff straight job
printf '\n'
cairn_demo_draw straight/loss.csv killed.csv job/loss.csv job "$drawing"
printf '  the same as a drawing: %s\n' "$drawing"

say 'A larger state: a small llama in bfloat16, as zarr v2 and as safetensors.'
run cairn_demo_save llama
run cairn show llama/zarr2 --depth 3

leaf=layers.2.mlp.up
file=llama/zarr2/model/${leaf//.//}/0.0
say "A disk loses one bit of $leaf. Verifying names the leaf and the chunk."
byte=$(od -An -tu1 -j77777 -N1 "$file")
poke() { printf "\\x$(printf %02x "$1")" | dd of="$file" bs=1 seek=77777 conv=notrunc status=none; }
poke $((byte ^ 1))
finds cairn verify llama/zarr2

say 'Reading never gives a wrong number; what is whole still comes.'
finds cairn stats llama/zarr2 $leaf
run cairn stats llama/zarr2 layers.2.mlp.down

say 'The bit comes back, and all is well again. Are the two formats equal, number by number?'
poke "$byte"
run cairn verify llama/zarr2
run cairn diff llama/zarr2 llama/safetensors

printf '\nThat was all. `cairn --help` has the rest.\n'
