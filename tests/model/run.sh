#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the models with Spin: every line of `checks` must hold, every line of `mutations` must be
# caught.
#
#   tests/model/run.sh                    all, as many at a time as there are processors
#   tests/model/run.sh CHECK [-DMACRO...] one check, with more macros: two-saves -DCUTS=2
#
# A check that did not go through all states, for want of memory or depth, fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly here work MEGABYTES=2000 DEPTH=10000

fail() {
  echo "model: $*" >&2
  exit 1
}

names() { awk '!/^#/ {print $1}' "$here/checks"; }
# The line of a check without its name: model, kind, macros.
find_check() { awk -v name="$1" '$1 == name {$1 = ""; print}' "$here/checks"; }

# search CHECK MACRO...: prints what the search found.
search() {
  local line model kind macros
  line=$(find_check "$1")
  [ -n "$line" ] || fail "no check '$1'; there are: $(names | xargs)"
  read -r model kind macros <<<"$line"
  shift
  cd "$work"
  # shellcheck disable=SC2086
  spin $macros "$@" -a "$here/$model" >spin.log || fail "$(cat spin.log)"
  local how=(-DSAFETY) option=()
  if [ "$kind" = cycles ]; then how=(-DNP) option=(-l); fi
  cc -w "${how[@]}" -DMEMLIM=$MEGABYTES -o pan pan.c
  ./pan "${option[@]}" -m$DEPTH
}

states() { awk '/states, stored/ {print $1; exit}' <<<"$1"; }

holds() {
  local found
  found=$(search "$@") || fail "$*: $found"
  if ! grep -q 'errors: 0' <<<"$found" ||
    grep -q 'Search not completed\|search depth too small' <<<"$found"; then
    fail "$* does not hold:"$'\n'"$(sed '/^unreached/,$d' <<<"$found")"
  fi
  printf '%-44s holds, %s states\n' "$*" "$(states "$found")"
}

is_caught() {
  local found
  found=$(search "$2" "-DMUTATE_$1") || true
  grep -q 'errors: 1' <<<"$found" ||
    fail "nobody notices in '$2' that the rule $1 is missing"
  printf '%-44s caught after %s states\n' "$2 without $1" "$(states "$found")"
}

if [ "${1:-}" = --mutation ]; then
  is_caught "${@:2}"
elif [ $# -gt 0 ]; then
  holds "$@"
elif ! command -v spin >/dev/null; then
  echo "skipped: spin is not installed; 'tools/install_packages.sh test' does it"
  [ "${CI:-}" != true ] || exit 1
  exit 77
else
  {
    names
    awk '!/^#/ {print "--mutation", $1, $2}' "$here/mutations"
  } | xargs --max-procs="$(nproc)" --max-lines=1 "$here/run.sh"
fi
