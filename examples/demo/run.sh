#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Cairn does, shown by the command itself.
set -euo pipefail
cd "$(dirname "$0")/../.."

build/bin/cairn --version
