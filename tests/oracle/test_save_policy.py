# SPDX-License-Identifier: Apache-2.0
"""When a run saves, on random steps, clocks and restarts, against a model written from the words of
the reference system's page."""

import json
import os
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBE = pathlib.Path(os.environ.get("CAIRN_BIN", ROOT / "build/dev/bin")) / "cairn_policy_probe"
RUNS = 4000
SECOND = 1_000_000
NOTHING, TEMPORARY, PERMANENT = 0, 1, 2


class Model:
    """Keeps a stop watch instead of the time of the last save: it counts what the clock goes
    forwards, and a jump back is no time at all."""

    def __init__(self, run, now):
        self.interval = run["interval"]
        self.steps = run["steps"]
        self.passed = 0
        self.looked = now
        self.last_step = 0

    def look(self, now):
        self.passed += max(0, now - self.looked)
        self.looked = now

    def every(self, step):
        inside = [every for every, until in self.steps if until is None or step <= until]
        return inside[0] if inside else None

    def wish(self, step, force):
        if force:
            return PERMANENT
        if step in (0, self.last_step):
            return NOTHING
        every = self.every(step)
        if every is not None and step in range(0, step + 1, every):
            return PERMANENT
        return TEMPORARY if self.interval and self.passed >= self.interval else NOTHING

    def step(self, step, now, force):
        self.look(now)
        kind = self.wish(step, force)
        if step == 0 and not force:
            self.passed = 0
        if kind != NOTHING:
            self.passed = 0
            self.last_step = step
        return kind

    def set(self, step, time):
        if step is not None:
            self.last_step = step
        if time is not None:
            self.passed, self.looked = 0, time


def refusal(run):
    """The reason why there is no such policy; None if there is one."""
    if run["interval"] is not None and run["interval"] < 0:
        return "policy/bad-interval"
    before = ()
    for every, until in run["steps"]:
        if every < 1:
            return "policy/bad-interval"
        if before and before[0] is None:
            return "policy/open-interval"
        if before and until is not None and until <= before[0]:
            return "policy/unsorted"
        before = (until,)
    return None


def expected(run):
    if reason := refusal(run):
        return reason
    model, answers = Model(run, run["now"]), []
    for verb, *rest in run["acts"]:
        if verb == "restart":
            model = Model(run, rest[0])
            model.set(rest[1], None)
            answers.append(None)
        elif verb == "set":
            answers.append(model.set(*rest))
        else:
            answers.append(model.step(*rest))
    return answers


def random_steps(rng):
    untils = sorted(rng.sample(range(1, 60), rng.randrange(4)))
    steps = [[rng.randint(1, 12), until] for until in untils]
    if rng.random() < 0.6:
        steps.append([rng.randint(1, 25), None])
    if rng.random() < 0.1:
        rng.shuffle(steps)
    if steps and rng.random() < 0.04:
        rng.choice(steps)[0] = rng.choice([0, -5])
    return steps


def random_acts(rng, now):
    step = 0
    for _ in range(rng.randrange(80)):
        now += rng.choice([0, 1, SECOND, 7 * SECOND, 61 * SECOND])
        if rng.random() < 0.08:
            now += rng.choice([-1, -5 * SECOND, -3600 * SECOND, 86400 * SECOND])
        what = rng.random()
        if what < 0.04:
            step = rng.choice([0, max(0, step - rng.randrange(20))])
            yield ["restart", now, step]
        elif what < 0.08:
            yield ["set", rng.choice([None, step, step + 1]), rng.choice([None, now, now + SECOND])]
        else:
            yield ["step", step, now, rng.random() < 0.05]
            step += rng.choice([0, 1, 1, 1, 1, 2, 5])


def random_run(rng):
    now = 1_767_225_600 * SECOND
    intervals = [None, 0, 1, 10 * SECOND, 60 * SECOND, 300 * SECOND]
    return {
        "interval": -1 if rng.random() < 0.02 else rng.choice(intervals),
        "steps": random_steps(rng),
        "now": now,
        "acts": list(random_acts(rng, now)),
    }


def test_a_run_saves_when_the_model_does():
    rng = random.Random(7)
    runs = [random_run(rng) for _ in range(RUNS)]
    lines = "".join(json.dumps(run) + "\n" for run in runs)
    done = subprocess.run([PROBE], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    model = [expected(run) for run in runs]
    for run, answer, wanted in zip(runs, answers, model, strict=True):
        assert answer == wanted, run
    decided = [kind for run in model if isinstance(run, list) for kind in run]
    refused = {run for run in model if isinstance(run, str)}
    assert all(decided.count(kind) > RUNS for kind in (NOTHING, TEMPORARY, PERMANENT))
    assert refused == {"policy/bad-interval", "policy/open-interval", "policy/unsorted"}
