# SPDX-License-Identifier: Apache-2.0
"""One rank of a job in Python, told what to do one line of JSON at a time, or by arguments.

    rank_program.py jax PORT RANK COUNT     of jax.distributed, with two devices for each process
    rank_program.py late PORT RANK COUNT    the same, with a manager and a run made before
    rank_program.py torch PORT RANK COUNT   of torch.distributed
    rank_program.py rendezvous DIRECTORY RANK COUNT
    rank_program.py alone DEVICES
    mpirun ... rank_program.py mpi DIRECTORY ORDER...    answers in a file for each rank

An order is what to `do` and the arguments of that function below, `special` ones by rank. An
answer is what it returns, or an `error` with its text and reason.
"""

import dataclasses
import functools
import json
import os
import signal
import sys
import threading
from pathlib import Path

import numpy as np

# Libraries print what is no answer.
answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

LONG = 60
SHAPES = {"rows": (16, 6), "columns": (5, 16), "both": (8, 16), "turned": (16, 8), "all": (3, 4)}


def whole(key, step):
    shape = SHAPES[key]
    array = np.arange(step, step + np.prod(shape), dtype=np.int32).reshape(shape)
    return array.astype(np.float32) / 7 if key == "both" else array


def plain(step):
    return {"count": np.arange(5) + step, "step": step, "name": "run", "list": [1, 2.5, None]}


def on_mesh():
    """Every device of the job, the second axis inside of a process; and how leaves lie on it."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    mesh = Mesh(np.array(jax.devices()).reshape(-1, 2), ("x", "y"))
    specs = {"rows": ("x",), "columns": (None, ("x", "y")), "both": ("x", "y"),
             "turned": ("y", "x"), "all": ()}
    return {key: NamedSharding(mesh, PartitionSpec(*spec)) for key, spec in specs.items()}


class Rank:
    def __init__(self, rank, with_jax):
        self.rank = rank
        self.with_jax = with_jax

    @functools.cached_property
    def runs(self):
        from rank_runs import Runs
        return Runs(self.rank)

    def state(self, step):
        if not self.with_jax:
            return {**plain(step), **{key: whole(key, step) for key in SHAPES}}
        import jax
        arrays = {key: jax.make_array_from_callback(SHAPES[key], sharding,
                                                    lambda index, key=key: whole(key, step)[index])
                  for key, sharding in on_mesh().items()}
        return {**plain(step), **arrays, "here": jax.numpy.arange(4.0) + step}

    def save(self, path, step, seconds=LONG, extra=None, wrong=None, only=None, die=False,
             layout="zarr2"):
        import cairn
        tree = self.state(step)
        if extra is not None and only in (None, self.rank):
            tree["extra"] = extra
        if wrong is not None:
            tree["wrong"] = {"object": object(), "set": {1}}[wrong]
        progress = (lambda done, total: os.kill(os.getpid(), signal.SIGKILL)) if die else None
        return cairn.save(tree, path, step=step, timeout=seconds, layout=layout,
                          progress=progress, overwrite=True)["arrays"]

    def load(self, path, step, seconds=LONG):
        import cairn
        if not self.with_jax:
            self.check(cairn.load(path, timeout=seconds), step)
            return self.local_jax(path, step)
        import jax
        shardings = on_mesh()
        template = self.state(0) | {
            key: jax.ShapeDtypeStruct(SHAPES[key], whole(key, 0).dtype, sharding=sharding)
            for key, sharding in shardings.items()}
        shards = self.check(cairn.load(path, template=template, timeout=seconds), step)
        loaded = cairn.load(path, sharding=shardings, timeout=seconds)
        assert isinstance(loaded["here"], np.ndarray)
        self.check(loaded, step)
        self.check(cairn.load(path, timeout=seconds), step)
        return shards

    def run_training(self, path, steps):
        """As a training loop saves: every second step, and another tree by hand."""
        from cairn.serialization import Checkpointer, CheckpointInterval
        run = Checkpointer(path, None, [CheckpointInterval(every=2)])
        for step in range(1, steps + 1):
            run.on_step(None, self.state(step), step=step)
        run.save_pytree(self.state(steps + 1), "model", step=steps + 1)
        run.wait_until_finished()
        return run._last_save_step

    def resume_training(self, path, step):
        """What run_training() saved, onto this job's devices, however many processes they are."""
        from cairn.serialization import Checkpointer
        run = Checkpointer(path, None, [])
        loaded, extras = run.load_pytree(None, prefix="model", load_treedef=True,
                                         template=self.state(0))
        assert extras["step"] == step
        older, _ = run.load_checkpoint(None, path=f"{path}/run-{step - 1}", discover_latest=False,
                                       template=self.state(0))
        self.check(older, step - 1)
        return self.check(loaded, step)

    def on_some(self, devices):
        import jax
        from jax.sharding import Mesh, NamedSharding, PartitionSpec
        mesh = Mesh(np.array(jax.devices())[devices], "x")
        spec = PartitionSpec("x") if len(devices) == 2 else PartitionSpec()
        return NamedSharding(mesh, spec)

    def save_on_some(self, path, devices, by_manager=False):
        """An array on these devices of the job, and one on all of them."""
        import cairn
        import jax
        sharding = self.on_some(devices)
        array = jax.make_array_from_callback(SHAPES["rows"], sharding,
                                             lambda index: whole("rows", 5)[index], dtype=np.int32)
        tree = {"some": array, "rows": self.state(5)["rows"]}
        if not by_manager:
            return cairn.save(tree, path, timeout=LONG)["arrays"]
        self.runs.manager.save_tree(tree, path)
        return self.runs.manager.wait_until_finished()

    def save_gathered(self, path, by_functions):
        """Arrays of all processes, brought to the host first."""
        from cairn.serialization import sharding_utils, utils
        shardings = on_mesh()
        tree = {key: self.state(5)[key] for key in shardings}
        mesh = shardings["rows"].mesh
        specs = {key: sharding.spec for key, sharding in shardings.items()}
        gather = sharding_utils.make_shard_and_gather_fns(specs, mesh)[1] if by_functions else True
        self.runs.manager.save_tree(tree, path, gather_fns=gather)
        self.runs.manager.wait_until_finished()
        for key, array in utils.apply_gather_functions(tree, gather, False, False).items():
            np.testing.assert_array_equal(array, whole(key, 5), strict=True)

    def load_on_some(self, path, devices, key):
        """The number of shards that this process has."""
        import cairn
        sharding, shards = self.on_some(devices), []
        for tree in (cairn.load(path, sharding=sharding, timeout=LONG),
                     self.runs.manager.load(path, None, shardings={key: sharding})[0]):
            assert (tree[key].sharding, tree[key].dtype) == (sharding, np.int32)
            shards.append(len(tree[key].addressable_shards))
            for shard in tree[key].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data),
                                              whole("rows", 5)[shard.index])
        assert shards[0] == shards[1]
        return shards[0]

    def check(self, tree, step):
        """Equal to NumPy's, bit for bit; says how many shards there were."""
        shards = 0
        for key in SHAPES:
            expected = whole(key, step)
            if isinstance(tree[key], np.ndarray):
                np.testing.assert_array_equal(tree[key], expected, strict=True)
                continue
            assert tree[key].sharding == on_mesh()[key]
            for shard in tree[key].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index],
                                              strict=True)
                shards += 1
        for key, expected in plain(step).items():
            np.testing.assert_array_equal(tree[key], expected)
        if "here" in tree:
            np.testing.assert_array_equal(np.asarray(tree["here"]), np.arange(4.0) + step)
        return shards

    def local_jax(self, path, step):
        """Ranks that meet otherwise may each have a JAX of their own."""
        if "jax" not in sys.modules:
            return 0
        import cairn
        import jax
        template = {**plain(0), **{key: jax.numpy.zeros(SHAPES[key], whole(key, 0).dtype)
                                   for key in SHAPES}}
        loaded = cairn.load(path, template=template)
        for key in SHAPES:
            assert isinstance(loaded[key], jax.Array)
            np.testing.assert_array_equal(np.asarray(loaded[key]), whole(key, step), strict=True)
        return len(SHAPES)

    def save_beside_a_thread(self, path, step):
        """Says so when a thread has counted far since the save began to wait for others: rank 0 has
        made the directory, and the others look for its note."""
        ended = threading.Event()
        looked = is_looked_for() if self.rank else None

        def is_waiting():
            return is_in_a_save() and (looked.is_set() if looked else os.path.isdir(path))

        def count():
            while not ended.is_set() and not is_waiting():
                pass
            for _ in range(200_000):
                pass
            say({"counted": not ended.is_set()})

        thread = threading.Thread(target=count)
        thread.start()
        try:
            return self.save(path, step)
        finally:
            ended.set()
            thread.join()

    def coordinate(self, **options):
        import cairn
        return dataclasses.asdict(cairn.coordinate(**options))

    def do(self, order):
        name = order.pop("do")
        order |= order.pop("special", {}).get(str(self.rank), {})
        try:
            return {"got": getattr(self if hasattr(self, name) else self.runs, name)(**order)}
        except (Exception, KeyboardInterrupt) as error:
            return {"error": str(error), "reason": getattr(error, "reason", ""),
                    "type": type(error).__name__}


def is_looked_for():
    """Set when the main thread looks for a note of another rank in a save."""
    from cairn._boards import JaxBoard
    looked, find = threading.Event(), JaxBoard.find

    def noted(board, key):
        if is_in_a_save():
            looked.set()
        return find(board, key)

    JaxBoard.find = noted
    return looked


def is_in_a_save():
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_name != "_begin":
        frame = frame.f_back
    return frame is not None


def say(answer):
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def with_devices(count):
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={count}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    return jax


def start(how, *words):
    if how == "alone":
        with_devices(words[0])
        return Rank(0, True)
    rank, count = int(words[1]), int(words[2])
    if how in ("jax", "late"):
        jax = with_devices(2)
        made = Rank(rank, True)
        if how == "late":
            made.runs.make_run(words[3], every=1)
        jax.distributed.initialize(f"localhost:{words[0]}", count, rank)
        jax.devices()  # for which JAX waits for all
        return made
    if how == "torch":
        import torch.distributed
        torch.distributed.init_process_group("gloo", init_method=f"tcp://localhost:{words[0]}",
                                             rank=rank, world_size=count)
    else:
        os.environ |= {"CAIRN_RENDEZVOUS": words[0], "RANK": words[1], "WORLD_SIZE": words[2]}
    return Rank(rank, False)


def main():
    if sys.argv[1] == "mpi":
        from mpi4py import MPI
        with_devices(1)
        rank = Rank(MPI.COMM_WORLD.Get_rank(), False)
        answers = [rank.do(json.loads(order)) for order in sys.argv[3:]]
        Path(sys.argv[2], str(rank.rank)).write_text(json.dumps(answers))
        return
    rank = start(*sys.argv[1:])
    say({"ready": rank.rank})
    for line in sys.stdin:
        say(rank.do(json.loads(line)))


main()
