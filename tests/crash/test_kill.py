# SPDX-License-Identifier: Apache-2.0
"""A job that is killed again and again, at any moment, never loses what it said was saved."""

import random

KILLS = 200
SEED = 20261115


def numbers(said, what):
    assert not any("reason" in line for line in said), said
    return [line[what] for line in said if what in line]


def test_a_job_that_is_killed_at_any_moment_keeps_its_checkpoints(start, quick):
    print("seed", SEED)
    rng = random.Random(SEED)
    base = quick / "run"
    first = start()
    assert first.ask(do="own", base=base, number=0) == {"saved": 0}
    first.end()
    checker, reader = start(), start()
    reader.tell(do="follow", base=base)
    begun = saved = 0
    for kill in range(KILLS):
        job = start(with_ticks=True)
        job.tell(do="train", base=base, **{"from": begun + 1})
        said = []
        # Some are killed while they take up what the one before left, the others later.
        while kill % 3 and not numbers(said, "saved"):
            said.append(job.answer())
        job.wait_for_operations(rng.randrange(1, 1000))
        said += job.kill()
        begun = max([begun, *numbers(said, "begun")])
        saved = max([saved, *numbers(said, "saved")])
        found = checker.ask(do="latest", base=base)
        job.end()
        assert saved <= found.get("number", -1) <= begun, (kill, found, saved, begun)
    # Whatever was left, the next save succeeds, and nothing of the dead is there after it.
    assert checker.ask(do="own", base=base, number=begun + 1) == {"saved": begun + 1}
    left = [str(path) for path in base.rglob(".cairn-*") if path.is_dir()]
    assert not left, left
    seen = [0]
    while seen[-1] != begun + 1:
        seen.append(reader.answer().get("number"))
        assert seen[-1] is not None and seen[-1] >= seen[-2], seen[-10:]
