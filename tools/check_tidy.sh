#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-tidy over the product sources: tools/check_tidy.sh BUILD, where compile_commands.json is.
set -euo pipefail
cd "$(dirname "$0")/.."

run-clang-tidy-19 -quiet -p "$1" -j "$(nproc)" -warnings-as-errors='*' \
  '/cairn/(?!testing/).*(?<!_test)\.cc$'
