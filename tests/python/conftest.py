# SPDX-License-Identifier: Apache-2.0
"""The package of the build, with eight devices for JAX."""

import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from rank_jobs import Job

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
PACKAGE = Path(os.environ["CAIRN_BUILD"]) / "python"
sys.path.insert(0, str(PACKAGE))
# For the programs that tests start.
os.environ["PYTHONPATH"] = str(PACKAGE)
# A shell makes what it starts with & deaf to Ctrl-C, and whatever that starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def mesh_of(axes):
    import jax
    import numpy as np
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(*axes.values()), tuple(axes))


@pytest.fixture(name="line")
def mesh_of_one_axis():
    return mesh_of({"a": 8})


@pytest.fixture(name="grid")
def mesh_of_two_axes():
    return mesh_of({"a": 4, "b": 2})


@pytest.fixture(scope="module")
def start():
    """Of jobs, which end with the module."""
    jobs = []

    def run(*words):
        jobs.append(Job(*words))
        return jobs[-1]

    yield run
    for job in jobs:
        job.end()


@pytest.fixture
def with_mpi():
    if shutil.which("mpirun") is None or importlib.util.find_spec("mpi4py") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI needs MPI and mpi4py")
        pytest.skip("mpirun or mpi4py is not installed")
