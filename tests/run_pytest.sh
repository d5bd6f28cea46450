#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/run_pytest.sh PYTHON SUITE: runs the suite, or says why it can not (77: skipped).
set -euo pipefail

if [ ! -x "$1" ]; then
  echo "skipped: there is no $1; 'make test' makes it"
  [ "${CI:-}" != true ] || exit 1
  exit 77
fi
exec "$1" -B -m pytest -q -rfEs -p no:cacheprovider "$2"
