# SPDX-License-Identifier: Apache-2.0
"""Processes that are ended with the test, and a place where syncing costs nothing."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

PROBE = Path(os.environ["CAIRN_BIN"]) / "cairn_crash_probe"


class Probe:
    """A process that is told what to do one line at a time; crash_probe.cc says what it can."""

    def __init__(self, with_ticks=False):
        self.ticks, told = os.pipe()
        words = [PROBE, str(told)] if with_ticks else [PROBE]
        self.process = subprocess.Popen(words, text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, pass_fds=[told])
        os.close(told)

    def tell(self, **order):
        line = {key: str(value) if isinstance(value, Path) else value
                for key, value in order.items()}
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, "it ended without an answer"
        return json.loads(line)

    def ask(self, **order):
        self.tell(**order)
        return self.answer()

    def wait_for_operations(self, count):
        while count > 0 and (told := os.read(self.ticks, count)):
            count -= len(told)

    def kill(self):
        """Returns what it had said and nobody had read."""
        self.process.kill()
        lines = self.process.stdout.read().splitlines()
        self.process.wait()
        return [json.loads(line) for line in lines]

    def stop(self, **order):
        """Gives the order, which stops the process in the middle; or its answer, if it did not."""
        said = self.ask(signal=int(signal.SIGSTOP), **order)
        if "struck" not in said:
            return said
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        return None

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        return self.answer()

    def end(self):
        if self.process.stdin.closed:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        os.close(self.ticks)


@pytest.fixture
def start():
    probes = []

    def run(with_ticks=False):
        probes.append(Probe(with_ticks))
        return probes[-1]

    yield run
    for probe in probes:
        probe.end()


@pytest.fixture
def quick(tmp_path):
    """A directory in memory where there is one: killed processes lose nothing that was written."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    path = Path(tempfile.mkdtemp(dir="/dev/shm"))
    yield path
    shutil.rmtree(path)
