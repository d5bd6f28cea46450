#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails when a C++ file is not laid out as .clang-format says; with --fix lays it out.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
[ "${1:-}" != --fix ] || mode=(-i)
git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' |
  xargs -0 -P "$(nproc)" -n 16 clang-format-19 "${mode[@]}"
