# SPDX-License-Identifier: Apache-2.0
"""request-save: a job saves because somebody asks for it."""

import json
import shutil
import subprocess
import threading

import pytest


class Trainer:
    """A job that owns a run, and makes a step when it is told to."""

    def __init__(self, binaries, run):
        self.process = subprocess.Popen([binaries / "cairn_run_probe", run], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.steps = 0

    def step(self, how="step"):
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()
        self.steps += 1
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait() == 0
        self.process.stdout.close()


@pytest.fixture
def trainer(command, tmp_path):
    job = Trainer(command.parent, tmp_path / "run")
    assert job.step("force") == "saved"
    yield job
    job.end()


def test_the_job_saves_and_wait_says_what(command, cairn, tmp_path, trainer):
    run = tmp_path / "run"
    ask = subprocess.Popen([command, "request-save", run, "--reason", "before the reboot", "--wait",
                            "--json"], stdout=subprocess.PIPE, text=True)
    while trainer.step() != "saved":
        assert ask.poll() is None, "nothing is saved yet"
    document = json.loads(ask.communicate()[0])
    assert ask.returncode == 0
    assert document == {"path": str(run), "reason": "before the reboot",
                        "checkpoint": str(run / f"run-{trainer.steps}"), "step": trainer.steps,
                        "time": document["time"]}
    assert not (run / ".cairn-request.json").exists()
    assert trainer.step() == "went on", "it was answered"
    listed = cairn("ls", run, "--json").document["checkpoints"]
    assert [entry["step"] for entry in listed] == [trainer.steps - 1, 1]
    assert not listed[0]["is_temporary"]


def test_a_request_waits_for_a_job(cairn, command, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    done = cairn("request-save", run, "--reason", "now")
    assert done.out == f"{run}: a save is asked for\n"
    assert "no running job has saved here yet" in done.error
    assert json.loads((run / ".cairn-request.json").read_text())["reason"] == "now"
    assert "a save is asked for: now" in cairn("watch", run, "--once").out
    late = cairn("request-save", run, "--wait", "--timeout", "0.01", "--json", status=3)
    assert late.document["error"]["reason"] == "request/not-taken"
    assert (run / ".cairn-request.json").exists()


def test_a_job_that_has_not_saved_yet_takes_the_request(cairn, command, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    job = Trainer(command.parent, run)
    assert job.step() == "went on"
    done = cairn("request-save", run)
    assert "waits for the next step of any job" in done.error
    while job.step() != "saved":
        pass
    assert not (run / ".cairn-request.json").exists()
    assert cairn("request-save", run).error == ""
    job.end()


def test_what_was_saved_before_is_no_answer(cairn, tmp_path, originals):
    """The request goes, but no save follows: an older checkpoint must not be taken for it."""
    run = shutil.copytree(originals / "run", tmp_path / "run")
    request = run / ".cairn-request.json"

    def take():
        while not request.exists():
            pass
        request.unlink()

    job = threading.Thread(target=take)
    job.start()
    late = cairn("request-save", run, "--wait", "--timeout", "3", "--json", status=3)
    job.join()
    assert late.document["error"]["reason"] == "request/not-saved"


def test_what_is_no_run_is_refused(cairn, tmp_path):
    assert "[fs/not-found]" in cairn("request-save", tmp_path / "nothing", status=3).error
    cairn("request-save", tmp_path, "--timeout", "5", status=2)
