#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/run_fuzz.sh [RUNS [TARGET...]]: runs the fuzz targets, first their seeds, then RUNS inputs
# (a tenth of them for whole checkpoints).
# What crashes one lies in build/fuzz/crashes afterwards; it becomes a seed and a unit test.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-200000}
shift || true
build=build/fuzz
mkdir -p $build/crashes $build/logs

run_one() {
  local runs=$1 name=$2 log=build/fuzz/logs/$2.log
  local grown=build/fuzz/corpus/$name seeds=fuzz/corpus/$name
  local options=(-rss_limit_mb=2048 -malloc_limit_mb=512 -timeout=20 -max_len=4096
    -artifact_prefix="build/fuzz/crashes/$name-" -print_final_stats=1 -verbosity=1)
  [ ! -f "fuzz/$name.dict" ] || options+=(-dict="fuzz/$name.dict")
  # It opens, verifies and loads whole checkpoints, some of them large.
  if [ "$name" = checkpoint ]; then
    runs=$((runs / 10))
    options+=(-timeout=120)
  fi
  mkdir -p "$grown"
  local fuzzer=(build/fuzz/fuzzers/"${name}_fuzz" "${options[@]}")
  if "${fuzzer[@]}" -runs=0 "$seeds" >"$log" 2>&1 &&
    "${fuzzer[@]}" -runs="$runs" "$grown" "$seeds" >>"$log" 2>&1; then
    printf '%-24s %3d seeds, %8s runs: good\n' "$name" "$(ls "$seeds" | wc -l)" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)"
  else
    printf '%-24s FAILED\n' "$name"
    tail -n 60 "$log"
    return 1
  fi
}
export -f run_one

if [ $# -gt 0 ]; then
  targets=("$@")
else
  mapfile -t targets < <(cd $build/fuzzers && ls | sed -n 's/_fuzz$//p')
fi
[ ${#targets[@]} -gt 0 ] || { echo "no fuzz target is built in $build" >&2; exit 1; }
printf '%s\n' "${targets[@]}" |
  xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'run_one "$@"' _ "$runs" {}
