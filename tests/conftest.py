# SPDX-License-Identifier: Apache-2.0
"""Where the suites find what was built and what other systems wrote."""

import os
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def source() -> Path:
    """The root of the project."""
    return SOURCE


@pytest.fixture(scope="session")
def build() -> Path:
    """The build folder that ctest runs for."""
    return Path(os.environ["CAIRN_BUILD"])


@pytest.fixture(scope="session")
def command() -> Path:
    """The `cairn` command."""
    return Path(os.environ["CAIRN_BIN"]) / "cairn"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Checkpoints that other systems wrote. They lie beside the project; CI must have them."""
    folder = Path(os.environ.get("CAIRN_FIXTURES", SOURCE.parent / "shared" / "fixtures"))
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs the fixtures, and there are none in {folder}")
        pytest.skip("fixtures are not beside this clone (../shared)")
    return folder
