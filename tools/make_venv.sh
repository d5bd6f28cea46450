#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes .venv with the peers that the tests compare with; again only when the list of them changed.
set -euo pipefail
cd "$(dirname "$0")/.."

list=tools/requirements-test.txt
wanted=$(sha256sum <"$list")
stamp=.venv/requirements.sha256
[ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || exit 0

echo "making .venv from $list (once; it takes some minutes)"
rm -rf .venv
/usr/bin/python3 -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r "$list"
echo "$wanted" >"$stamp"
