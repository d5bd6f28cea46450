#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/make_wheel.sh FOLDER: builds the wheel for the Python of .venv, puts the libraries that it
# needs inside, with their licences, and leaves it in FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."
into=$1

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
.venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
  --wheel-dir "$scratch" .
PATH=$PWD/.venv/bin:$PATH .venv/bin/python -m auditwheel repair --wheel-dir "$into" "$scratch"/*.whl
.venv/bin/python tools/add_licenses.py "$into"/*.whl
