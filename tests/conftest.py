# SPDX-License-Identifier: Apache-2.0
"""Where the suites find what was built and what other systems wrote."""

import os
import signal
from pathlib import Path

import pytest
from disks import make_disk

SOURCE = Path(__file__).resolve().parent.parent
LONGEST_TEST = 300  # seconds; many times what any of them takes


@pytest.fixture(autouse=True)
def limit(request):
    """What hangs becomes a failure that says where."""

    def give_up(*_):
        raise TimeoutError(f"{request.node.name} hangs: it is not over after {LONGEST_TEST} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST_TEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def disk(tmp_path):
    """disk("ext4", bytes): one of the test's own, unmounted whatever happens."""
    disks = []

    def make(kind, size, **limits):
        disks.append(make_disk(tmp_path, kind, size, **limits))
        return disks[-1]

    yield make
    for each in disks:
        each.end()


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
