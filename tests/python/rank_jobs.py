# SPDX-License-Identifier: Apache-2.0
"""Jobs of several processes, and what they answer."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = Path(__file__).parent / "rank_program.py"


class Job:
    """The ranks of a job, each told what to do one line at a time."""

    def __init__(self, how, count, *words):
        port = words[0] if words else free_port()
        ends = [[str(count)]] if how == "alone" else \
            [[str(port), str(rank), str(count), *words[1:]] for rank in range(count)]
        self.ranks = [subprocess.Popen([sys.executable, PROGRAM, how, *end], text=True,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                      for end in ends]
        for rank, process in enumerate(self.ranks):
            assert self.answer(rank) == {"ready": rank}, process.wait()

    def tell(self, rank, do, **words):
        self.ranks[rank].stdin.write(json.dumps({"do": do, **words}) + "\n")
        self.ranks[rank].stdin.flush()

    def answer(self, rank):
        return json.loads(self.ranks[rank].stdout.readline())

    def do(self, do, special=None, **words):
        """All of them at once; `special` has more words for some."""
        for rank in range(len(self.ranks)):
            self.tell(rank, do, **(words | (special or {}).get(rank, {})))
        return self.answers(range(len(self.ranks)))

    def answers(self, ranks):
        return [self.answer(rank) for rank in ranks]

    def end(self):
        for process in reversed(self.ranks):  # JAX ends whoever sees rank 0 go
            process.kill()
            process.communicate()


def free_port():
    with socket.socket() as at:
        at.bind(("localhost", 0))
        return at.getsockname()[1]


def got(answers):
    assert all("got" in answer for answer in answers), answers
    return [answer["got"] for answer in answers]


def failed(answers, *words):
    """All of them got one error, with these words in it."""
    texts = {answer.get("error") for answer in answers}
    assert len(texts) == 1, texts
    text = texts.pop()
    assert text and all(word in text for word in words), text


def mpirun(count, *orders):
    command = ["mpirun", "--oversubscribe", "-n", str(count)]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    with tempfile.TemporaryDirectory() as answers:  # mpirun mixes the outputs of its ranks
        done = subprocess.run([*command, sys.executable, PROGRAM, "mpi", answers,
                               *map(json.dumps, orders)], text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return {int(file.name): json.loads(file.read_text()) for file in Path(answers).iterdir()}
