# SPDX-License-Identifier: Apache-2.0
"""The command: `python -m cairn`, and `cairn` where the package is installed."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    command = Path(__file__).parent / "bin" / "cairn"
    if not command.exists():
        sys.exit(f"cairn: the command is not in this installation ({command} is missing)")
    os.execv(command, ["cairn", *sys.argv[1:]])


if __name__ == "__main__":
    main()
