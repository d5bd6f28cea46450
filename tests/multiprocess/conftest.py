# SPDX-License-Identifier: Apache-2.0
"""Jobs that are ended with the test; JAX, where a test imports it, on eight CPU devices."""

import os

import pytest
from jobs import Job

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["JAX_ENABLE_X64"] = "1"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture
def start_job(tmp_path):
    jobs = []

    def run(count, ranks=None):
        jobs.append(Job("alone" if count == 1 else tmp_path / f"meet{len(jobs)}", count, ranks))
        return jobs[-1]

    yield run
    for job in jobs:
        job.end()
