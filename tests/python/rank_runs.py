# SPDX-License-Identifier: Apache-2.0
"""What a rank of rank_program.py does with managers and with the checkpoints of a run."""

import datetime as dt
import os
import signal

import cairn
import numpy as np
from cairn.serialization import AsyncCheckpointManager, Checkpointer, CheckpointInterval
from cairn.serialization.checkpointer import RetentionRules, find_latest_checkpoint


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(*_):
    raise OSError("the disk of this rank is on fire")


BAD = {"object": np.array([object()]), "set": {1}}


class Runs:
    """Of one rank. `wrong` is what is wrong here: a bad leaf, a function that raises, or something
    that JSON does not hold."""

    def __init__(self, rank):
        self.rank = rank
        self.minutes = 0
        self.manager = AsyncCheckpointManager()
        self.run = None

    def now(self):
        return dt.datetime(2020 + self.rank, 1, 1) + dt.timedelta(minutes=self.minutes)

    def tree(self, step, wrong=None, only=None):
        tree = {"w": np.arange(1000.0) + step, "step": step}
        if wrong in BAD:
            tree["bad"] = BAD[wrong]
        return tree if only is None else tree | {"only": only}

    def make_manager(self, enable=None):
        self.manager = AsyncCheckpointManager(enable=enable)

    def make_run(self, path, every=None, minutes=None, keep=None, plain=False):
        """`plain`: with the clock of the machine, and not asked at every step."""
        self.run = None
        asked = {} if plain else {"dt_now_injection": self.now, "agreement_share": 1}
        self.run = Checkpointer(
            path, None if minutes is None else dt.timedelta(minutes=minutes),
            [] if every is None else [CheckpointInterval(every=every)],
            retention=None if keep is None else RetentionRules(keep_last_n=keep),
            save_on=[signal.SIGUSR1], stop_on=[signal.SIGTERM], **asked)

    def pass_time(self, minutes):
        self.minutes += minutes

    def manager_save(self, path, step, how="save_tree", wrong=None, only=None, dies=False):
        options = {"prefix": "model"} if how == "save_pytree" else {}
        if wrong == "gather":
            options["gather_fns"] = {"w": fail}
        if wrong == "json":
            options["metadata" if how == "save_tree" else "extras"] = {"bad": object()}
        getattr(self.manager, how)(self.tree(step, wrong, only), path,
                                   progress=die if dies else None, **options)
        self.manager.wait_until_finished()

    def manager_load(self, path, step):
        loaded, _ = self.manager.load(path, None)
        self.check(loaded, step)

    def front_load(self, path, step, wrong=None):
        self.check(cairn.load(path, template=self.tree(0, wrong)), step)

    def check(self, loaded, step):
        np.testing.assert_array_equal(loaded["w"], self.tree(step)["w"])

    def step(self, step, wrong=None, only=None, dies=False, callback=None, waits=True):
        """The name of what it saved."""
        callbacks = {"fine": lambda *_: None, "fails": fail}
        save = self.run.on_step(
            None, self.tree(step, wrong, only), step=step,
            true_callbacks=[callbacks[callback]] if callback else None,
            metrics={"bad": object()} if wrong == "json" else None,
            progress=die if dies else None)
        if waits:
            self.run.wait_until_finished()
        return None if save is None else os.path.basename(save.path)

    def steps(self, count, forced):
        """Those that saved."""
        return [step for step in range(1, count + 1)
                if self.run.on_step(None, self.tree(step), step=step, force=step == forced)]

    def callbacks_save(self, step, fails=False):
        def save(name, mesh, metadata):
            self.manager.save_tree(self.tree(step), f"{self.run.base_path}/{name}")
            if fails:
                fail()

        return self.run.on_step(None, step=step, force=True, true_callbacks=[save]) is not None

    def run_save(self, step, wrong=None):
        options = {"extras": {"bad": object()}} if wrong == "json" else {}
        self.run.save_checkpoint(self.tree(step, wrong), f"run-{step}", step=step, **options)
        self.run.wait_until_finished()

    def should_stop(self):
        return self.run.should_stop

    def resume(self, wrong=None):
        """The step of the latest, which all ranks see alike, whatever the first of them has."""
        loaded, about = self.run.load_checkpoint(None, template=self.tree(0, wrong))
        assert loaded["step"] == about["step"]
        self.check(loaded, loaded["step"])
        assert find_latest_checkpoint(self.run.base_path).endswith(f"run-{loaded['step']}")
        return loaded["step"]
