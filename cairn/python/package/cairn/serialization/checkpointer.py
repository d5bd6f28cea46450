# SPDX-License-Identifier: Apache-2.0
"""The checkpoints of a training run: when to save, which to keep, where to resume."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cairn import _core, _exit
from cairn._arguments import Bytes, as_kind, checked, checked_init
from cairn._errors import DeadlineError, Error, error_of
from cairn._front import Progress
from cairn._json import read_object
from cairn._log import logger
from cairn._placements import leaves_of
from cairn._progress import progress_sink
from cairn._refusals import Refusal, prepared
from cairn.serialization import fsspec_utils
from cairn.serialization._casts import dtype_named
from cairn.serialization._clock import PolicyClock
from cairn.serialization._metadata import described, json_text
from cairn.serialization._targets import Callback, Target, with_kept
from cairn.serialization._tracker import say_unfinished
from cairn.serialization._wishes import Rules, wished_specs
from cairn.serialization.async_manager import (
    AsyncCheckpointManager,
    Prefix,
    text_of_prefix,
)
from cairn.serialization.base_manager import replace_file
from cairn.serialization.fsspec_utils import (
    join_path,
    local_path,
    path_text,
    scheme_of,
    settled,
    should_write_shared_checkpoint_files,
)

__all__ = ["AsyncCheckpointManager", "CheckpointInterval", "CheckpointPath", "Checkpointer",
           "MetadataDict", "RetentionRules", "find_latest_checkpoint", "fsspec_utils"]

MetadataDict = dict[str, Any]
CheckpointPath = str
StepCallback = Callable[[str, Any, dict[str, Any]], object]
_LONGEST = dt.timedelta(seconds=10**9)  # as for timeouts, which are numbers of seconds


@checked_init
@dataclass(frozen=True)
class CheckpointInterval:
    """Permanent saves at every step divisible by `every`, up to and including the step `until`;
    None: without end."""

    every: int
    until: int | None = None


@checked_init
@dataclass(frozen=True)
class RetentionRules:
    """Which permanent checkpoints are kept after a save: those that any rule matches, the latest,
    and pinned ones; without a rule, all.

    Args:
        keep_last_n: this many of the newest.
        keep_every_n: steps divisible by this number.
        best_k: this many of the best by the number `metric` in the `metrics` of their saves.
        mode: which values are better: "min" or "max".
        max_bytes: limit on the total size; the oldest are removed first.
        min_free_bytes: of disk space that must be free; the oldest are removed first.
        keep_temporary: treat temporary checkpoints like permanent ones.
    """

    keep_last_n: int | None = None
    keep_every_n: int | None = None
    best_k: int | None = None
    metric: str | None = None
    mode: str = "min"
    max_bytes: Bytes | None = None
    min_free_bytes: Bytes | None = None
    keep_temporary: bool = False

    def __post_init__(self) -> None:
        if self.mode not in ("min", "max"):
            raise ValueError(f"mode is \"min\" or \"max\", not {self.mode!r}")


class Checkpointer:
    """Called at every step; saves in the background when the policies say so.

        >>> import numpy as np, tempfile
        >>> base = tempfile.mkdtemp()
        >>> run = Checkpointer(base, None, [CheckpointInterval(every=10)])
        >>> for step in range(21):
        ...     _ = run.on_step(None, {"w": np.full(2, step)}, step=step)
        >>> os.path.basename(find_latest_checkpoint(base))
        'run-20'
        >>> state, metadata = run.load_checkpoint(None)
        >>> state["w"], metadata["step"]
        (array([20, 20]), 20)

    Checkpoints are `run-<step>` in the run directory. Temporary ones are saved by the clock, and
    removed after the next save. Call everything except `wait_until_finished` from one thread at a
    time; with several processes, on all of them.

    Args:
        base_path: the run directory.
        save_interval: the time between temporary saves; None or zero: no temporary saves. It and
            `step_policies` are attributes, and may be changed between steps.
        step_policies: in order of `until`; only the last may be None.
        manager: what saves and loads; its `timeout` is that of the run.
        dt_now_injection: the clock of the policies, datetime.now() if None.
        delete_old_temp_checkpoints: after the first save, remove temporary checkpoints and
            leftovers of earlier jobs.
        retention: which permanent checkpoints are kept. None: all.
        run_id: the name of the run; by default that of the loaded checkpoint, or a new one.
        take_over: take the run directory over from a living job that owns it.
        watch_requests: after `cairn request-save`, save at the next step.
        save_on: signals after which the next step saves, such as signal.SIGUSR1.
        stop_on: signals after which the next step saves, waits for the save, and `should_stop` is
            True: signal.SIGTERM.
        stop_timeout: limit on the wait for that save. After it on_step() raises, and the end of the
            program abandons the save.
        agreement_share: share of the time that several processes may spend on synchronising at
            steps that save nothing. If it takes long they synchronise less often, but at least
            every 50 steps and, at the current pace, about every 5 seconds. 1: at every step.
        metrics_path: a file for metrics of saves in the text format of Prometheus.
    """

    @checked
    def __init__(self, base_path: Any, save_interval: dt.timedelta | None,
                 step_policies: Sequence[CheckpointInterval], *,
                 manager: AsyncCheckpointManager | None = None,
                 dt_now_injection: Callable[[], dt.datetime] | None = None,
                 delete_old_temp_checkpoints: bool = True,
                 retention: RetentionRules | None = None, run_id: str | None = None,
                 take_over: bool = False, watch_requests: bool = True,
                 save_on: Sequence[int] = (), stop_on: Sequence[int] = (),
                 stop_timeout: dt.timedelta = dt.timedelta(minutes=10),
                 agreement_share: float = 0.02, metrics_path: Any = None) -> None:
        self._base_path = path_text(base_path)
        self.save_interval = save_interval
        self.step_policies = list(step_policies)
        self._base = local_path(base_path)
        self._manager = AsyncCheckpointManager() if manager is None else manager
        if not isinstance(self._manager, AsyncCheckpointManager):
            raise TypeError("manager is an AsyncCheckpointManager of cairn.serialization, "
                            f"not {self._manager!r}")
        if retention is not None and not isinstance(retention, RetentionRules):
            raise TypeError(f"retention is RetentionRules or None, not {retention!r}")
        _say_unused(type(self), Checkpointer, ["save_checkpoint", "_queue_checkpoint_removal"])
        _say_unused(type(self._manager), AsyncCheckpointManager,
                    ["save_tree", "save_pytree", "load", "load_pytree"])
        self._clock = PolicyClock(dt_now_injection)
        self._policy = self._wanted_policy()
        self._run = _core.RunCheckpointer(
            base_path=self._base, save_interval=self._policy[0], step_policies=self._policy[1],
            manager=self._manager.configured(), now=self._clock.now,
            delete_old_temp_checkpoints=delete_old_temp_checkpoints, retention=retention,
            run_id=run_id or "", take_over=take_over, watch_requests=watch_requests,
            save_on=[*map(int, save_on)], stop_on=[*map(int, stop_on)],
            stop_timeout=_nanoseconds(stop_timeout), agreement_share=agreement_share,
            metrics_path="" if metrics_path is None else local_path(metrics_path))

    @property
    def base_path(self) -> str:
        """The run directory, as it was given. Another one needs another Checkpointer."""
        return self._base_path

    @property
    def should_stop(self) -> bool:
        """True after a signal of `stop_on`, once on_step() has saved: leave the loop."""
        return self._run.should_stop()

    # What programs use although it is nobody's business.
    @property
    def _last_save_step(self) -> int:
        return self._run.last_save_step

    @_last_save_step.setter
    def _last_save_step(self, step: int) -> None:
        self._run.last_save_step = int(step)

    @property
    def _last_save_time(self) -> dt.datetime:
        return self._clock.moment(self._run.last_save_time)

    @_last_save_time.setter
    def _last_save_time(self, moment: dt.datetime) -> None:
        self._run.last_save_time = self._clock.nanoseconds(moment)

    @property
    def _dt_now_injection(self) -> Callable[[], dt.datetime]:
        return self._clock.ask

    def _queue_checkpoint_removal(self, checkpoint_dir: Any) -> None:
        """When this returns, the checkpoint is invisible; its bytes are deleted in the background.
        If it cannot be removed it stays, and the log says why."""
        try:
            self._run.remove(local_path(checkpoint_dir))
        except Error as error:
            logger.warning("%s is not removed: %s", checkpoint_dir, error)

    @checked
    def on_step(self, mesh: Any, pytree: Any = None, force: bool = False, *, step: int,
                true_callbacks: Sequence[StepCallback] | None = None,
                extras: Mapping[str, Any] | None = None,
                metrics: Mapping[str, float] | None = None,
                progress: Progress = None) -> _core.SaveHandle | None:
        """Saves if the policies say so, and returns the save; otherwise None.

        Unless forced, step 0 saves nothing and restarts the clock, and the last saved step is not
        saved again. Raises the error of an earlier save if it was not raised before.

        Args:
            mesh: passed to the callbacks; None if there is no mesh.
            pytree: see cairn.save_async(). Used only for a save. None: the callbacks save.
            force: save, permanently.
            true_callbacks: called with the name of the checkpoint in the run directory, the mesh,
                and the content of its mark. With a tree: once it is committed, in another thread.
                Without: before on_step() returns; what they save into that directory is durable by
                then.
            extras: anything that JSON can hold; stored with the checkpoint and in its mark.
            metrics: numbers for RetentionRules.best_k.
            progress: True draws a bar; a function gets the bytes done and the total.
        """
        if pytree is None and not true_callbacks:
            _check_mesh(mesh)
            if step != 0 or force:
                return None
        self._manager.configured()
        if self._policy != (wanted := self._wanted_policy()):
            self._run.set_policy(save_interval=wanted[0], step_policies=wanted[1])
            self._policy = wanted
        tree, about, numbers = prepared(lambda: (pytree, json_text(extras), json_text(metrics)),
                                        "", "")
        callbacks = [_told(one, mesh) for one in true_callbacks or ()]
        if pytree is None and isinstance(tree, Refusal):
            callbacks = [tree.refuse]
        try:
            save = self._run.on_step(step, None if pytree is None else tree, force=force,
                                     callbacks=callbacks, metrics=numbers, extras=about,
                                     progress=progress_sink(progress, "saving"))
        except DeadlineError:
            if self.should_stop:
                _exit.give_up()
            raise
        if save is not None:
            say_unfinished(save)
        elif isinstance(tree, Refusal):
            tree.refuse()
        return save

    @checked
    def save_checkpoint(self, tree: Any, destination: Any, *,
                        commit_callback: Callable[[], object] | None = None,
                        is_temporary: bool = False, mesh: Any = None, step: int = -1,
                        shardings: Any = None, partition_rules: Rules | None = None,
                        prefix: str | None = None, structured: bool = False, dtype: Any = None,
                        extras: Mapping[str, Any] | None = None,
                        metrics: Mapping[str, float] | None = None,
                        progress: Progress = None) -> _core.SaveHandle:
        """Starts to save into `destination` of the run directory, whatever the policies.

        Args:
            commit_callback: called once the checkpoint is durable and visible, in another thread.
            is_temporary: removed after the next save.
            shardings, partition_rules: must fit the tree; the default of load_checkpoint() for
                arrays that are not on a mesh now.
            prefix: the name of the tree; needed if `structured`.
            structured: also store the containers for the reference system.
            dtype: cast floats to this type.
            extras, metrics, progress: as on_step().
        """
        about = dict(extras or {})
        if structured:
            about["step"] = step
        return self._save(tree, self._inside(destination), in_run=True,
                          step=None if step == -1 else step, is_temporary=is_temporary,
                          prefix=prefix or "", structured=structured, dtype=dtype, extras=about,
                          metrics=metrics, mesh=mesh, shardings=shardings,
                          rules=partition_rules, committed=commit_callback, progress=progress)

    @checked
    def save_pytree(self, tree: Any, prefix: Prefix, *, step: int | None = None,
                    destination: Any = None, mesh: Any = None, dtype: Any = None,
                    extras: Mapping[str, Any] | None = None, temporary: bool = False,
                    write_index: bool = True, metrics: Mapping[str, float] | None = None,
                    progress: Progress = None) -> str:
        """Starts to save a tree with its containers, and returns the path.

        Args:
            step: save into `destination` of the run directory, by default `run-<step>`. None: save
                to the path `destination`, or into the run directory itself; this is not a
                checkpoint of the run.
            temporary: removed after the next save.
            Others: as save_checkpoint().
        """
        about = dict(extras or {})
        if step is None:
            path = self.base_path if destination is None else path_text(destination)
            where = "" if destination is None else local_path(destination)
        else:
            about["step"] = step
            path = join_path(self.base_path, destination or _core.step_directory(step))
            where = self._inside(destination or _core.step_directory(step))
        self._save(tree, where, in_run=step is not None, step=step, is_temporary=temporary,
                   prefix=text_of_prefix(prefix), structured=True, dtype=dtype, extras=about,
                   metrics=metrics, write_index=write_index, mesh=mesh, progress=progress)
        return path

    @checked
    def load_checkpoint(self, mesh: Any, *, path: Any = None, discover_latest: bool = True,
                        shardings: Any = None, partition_rules: Rules | None = None,
                        dtype: Any = None, prefix: str | None = None, structured: bool = False,
                        template: Any = None, strict_shapes: bool = True, fallback: bool = False,
                        allow_pickle: bool = False,
                        progress: Progress = None) -> tuple[Any, MetadataDict]:
        """Loads the tree of the latest good checkpoint, and its metadata.

        Args:
            mesh: where arrays are placed: by `shardings`, else by `partition_rules`, else as in the
                template if it is on the mesh, else by their saved specs if the mesh has these axes.
                Scalars, and arrays that were on one device or on no mesh, are replicated on all
                devices. So are all others, unless the mesh has several axes: then they are an
                error, except with `structured` or a template.
            path: where to look; None: the run directory.
            discover_latest: False: the path itself is the checkpoint.
            structured: return the saved containers; needs a prefix, which rules and shardings see
                in front of keys. Otherwise nested dicts.
            fallback: if the latest is found damaged, load the next older one; the log says so.
            Others: as load() and load_pytree() of AsyncCheckpointManager.

        Raises:
            FileNotFoundError: there is none.
        """
        found = self._load(
            mesh, path, required=True, discover_latest=discover_latest, shardings=shardings,
            partition_rules=partition_rules, dtype=dtype, prefix=prefix, structured=structured,
            template=template, strict_shapes=strict_shapes, fallback=fallback,
            allow_pickle=allow_pickle, progress=progress)
        assert found is not None
        return found

    @checked
    def load_checkpoint_if_any(self, mesh: Any, *, path: Any = None, discover_latest: bool = True,
                               shardings: Any = None, partition_rules: Rules | None = None,
                               dtype: Any = None, prefix: str | None = None,
                               structured: bool = False, template: Any = None,
                               strict_shapes: bool = True, fallback: bool = False,
                               allow_pickle: bool = False,
                               progress: Progress = None) -> tuple[Any, MetadataDict] | None:
        """load_checkpoint() for a program that may start for the first time: None if the run has no
        checkpoint yet. Damaged ones are an error."""
        return self._load(
            mesh, path, required=False, discover_latest=discover_latest, shardings=shardings,
            partition_rules=partition_rules, dtype=dtype, prefix=prefix, structured=structured,
            template=template, strict_shapes=strict_shapes, fallback=fallback,
            allow_pickle=allow_pickle, progress=progress)

    def _load(self, mesh: Any, path: Any, *, required: bool, discover_latest: bool, shardings: Any,
              partition_rules: Rules | None, dtype: Any, prefix: str | None, structured: bool,
              template: Any, strict_shapes: bool, fallback: bool, allow_pickle: bool,
              progress: Progress) -> tuple[Any, MetadataDict] | None:
        is_shaped = structured or template is not None
        target = Target(mesh=mesh, shardings=shardings, rules=partition_rules, prefix=prefix,
                        structured=structured, as_saved=True,
                        replicate="all" if is_shaped else "unsharded", template=template,
                        strict_shapes=strict_shapes, in_jax=mesh is not None)
        loaded = self._run.load_checkpoint(
            self._request(target, dtype, nested=not structured and template is None,
                          description=not structured, allow_pickle=allow_pickle,
                          progress=progress_sink(progress, "loading")),
            path=_root(path), discover_latest=discover_latest, structured=structured,
            fallback=fallback, required=required)
        if loaded is None:
            return None
        tree, metadata, extras, report = loaded
        about = with_kept(json.loads(extras) or {}, report)
        if structured:
            return target.finish(tree, report), about
        return target.finish(tree, report), \
            _joined(described(report, json.loads(metadata)), about)

    @checked
    def load_pytree(self, mesh: Any, *, prefix: Prefix, path: Any = None,
                    discover_latest: bool = True, discover_raise: bool = True,
                    partition_rules: Rules | None = None, dtype: Any = None,
                    load_treedef: bool = False, callback: Callback | None = None,
                    template: Any = None, strict_shapes: bool = True,
                    chunk_size: int | None = None, shardings: Any = None, fallback: bool = False,
                    allow_pickle: bool = False,
                    progress: Progress = None) -> tuple[Any, MetadataDict]:
        """Loads a tree that save_pytree() saved, from the latest checkpoint, with its extras and
        the content of its mark.

        Args:
            discover_raise: False: if there is no checkpoint, load a tree in the run directory
                itself, or else return (None, {}).
            load_treedef: return the saved containers; rules, shardings and callback see keys with
                the prefix in front. Otherwise nested dicts, and keys without it.
            Others: as load_checkpoint(), and load_pytree() of AsyncCheckpointManager.
        """
        target = Target(mesh=mesh, shardings=shardings, rules=partition_rules, callback=callback,
                        prefix=text_of_prefix(prefix), structured=load_treedef, as_saved=True,
                        replicate="all" if load_treedef else "unsharded",
                        template=template if load_treedef else None,
                        strict_shapes=strict_shapes, in_jax=mesh is not None)
        loaded = self._run.load_pytree(
            self._request(target, dtype, nested=not load_treedef, description=not load_treedef,
                          allow_pickle=allow_pickle,
                          chunk_size=max(chunk_size or 0, 0),
                          progress=progress_sink(progress, "loading")),
            path=_root(path), discover_latest=discover_latest, fallback=fallback,
            load_treedef=load_treedef, discover_raise=discover_raise)
        if loaded is None:
            return None, {}
        tree, metadata, extras, report = loaded
        about = with_kept(json.loads(extras) or {}, report)
        if load_treedef:
            return target.finish(tree, report), about
        return target.finish(tree, report), \
            _joined(described(report, json.loads(metadata)), about)

    def wait_until_finished(self) -> None:
        """Waits until all saves are durable and visible, callbacks have returned, and removals are
        done. Raises the error of a save if it was not raised before."""
        self._run.wait_until_finished()
        self._manager.wait_until_finished()

    def _request(self, target: Target, dtype: Any, **options: Any) -> _core.LoadRequest:
        return target.request(dtype=dtype_named(dtype), validate=self._manager.enable_validation,
                              **options)

    def _save(self, tree: Any, destination: Any, *, dtype: Any, extras: Mapping[str, Any],
              metrics: Mapping[str, float] | None, mesh: Any, shardings: Any = None,
              rules: Rules | None = None, progress: Progress = None,
              **options: Any) -> _core.SaveHandle:
        def make() -> tuple[Any, ...]:
            arrays = {} if shardings is None and rules is None else \
                {parts: leaf for parts, leaf in leaves_of(tree) if hasattr(leaf, "shape")}
            return (tree, wished_specs(arrays, mesh, shardings, rules), json_text(extras),
                    json_text(metrics))

        state, wishes, about, numbers = prepared(make, [], "", "")
        self._manager.configured()
        axes = [] if mesh is None else [*zip(mesh.axis_names, mesh.devices.shape)]
        save = self._run.save(state, destination, metrics=numbers, dtype=dtype_named(dtype),
                              extras=about, wishes=wishes, mesh=axes if wishes else [],
                              progress=progress_sink(progress, "saving"), **options)
        say_unfinished(save)
        return save

    def _inside(self, destination: Any) -> str:
        """A name in the run directory, also of a path in it; the path where it leads elsewhere."""
        path = local_path(join_path(self._base, local_path(destination)
                                    if scheme_of(path_text(destination)) else destination))
        name = os.path.relpath(path, self._base)
        return path if name == os.curdir or name.split(os.sep)[0] == os.pardir else name

    def _wanted_policy(self) -> tuple[int | None, list[tuple[int, int | None]]]:
        """Both may be changed at any time."""
        span = as_kind("save_interval", "dt.timedelta | None", self.save_interval)
        return _nanoseconds(span) if span else None, \
            [(policy.every, policy.until) for policy in self.step_policies]


def find_latest_checkpoint(base_path: Any) -> str | None:
    """The path of the latest good checkpoint, by step and then by time: the directory itself, or
    one in it, with `metadata.json`. None if there is none, or no such directory. The log lists
    skipped ones."""
    text = path_text(base_path)
    found = _core.find_latest_checkpoint(local_path(base_path))
    scheme = scheme_of(text)
    return found if found is None or scheme is None else f"{scheme}://{found}"


def _read_checkpoint_metadata(checkpoint_path: Any, fs: Any = None) -> MetadataDict:
    """The content of `metadata.json`. `fs` is ignored, for compatibility."""
    return read_object(os.path.join(settled(checkpoint_path), "metadata.json"))


def _write_checkpoint_metadata(checkpoint_path: Any, step: int, is_temporary: bool) -> None:
    """Writes `metadata.json`, which identifies a checkpoint of a run, on the first process."""
    if should_write_shared_checkpoint_files(checkpoint_path):
        mark = {"step": int(step), "timestamp": dt.datetime.now().isoformat(),
                "is_temporary": bool(is_temporary)}
        replace_file(os.path.join(settled(checkpoint_path), "metadata.json"), json.dumps(mark))


def _say_unused(made: type, known: type, names: Sequence[str]) -> None:
    """What a program overrides in vain."""
    if unused := [name for name in names if getattr(made, name) is not getattr(known, name)]:
        logger.warning("Checkpointer does not call what %s overrides: %s", made.__qualname__,
                       ", ".join(unused))


def _check_mesh(mesh: Any) -> None:
    """The mesh is the first argument, and easily forgotten."""
    if mesh is not None and not hasattr(mesh, "axis_names"):
        raise error_of("invalid_argument", "run/no-tree", "",
                       f"on_step() got a {type(mesh).__qualname__} as its mesh and no tree, so "
                       "there is nothing to save; pass the mesh, or None, first: "
                       "on_step(None, tree, step=step)")


def _nanoseconds(span: dt.timedelta) -> int:
    return max(-_LONGEST, min(span, _LONGEST)) // dt.timedelta(microseconds=1) * 1000


def _told(callback: StepCallback, mesh: Any) -> Callable[[str, str], object]:
    return lambda path, metadata: callback(os.path.basename(path), mesh, json.loads(metadata))


def _root(path: Any) -> str:
    """Empty: the run directory."""
    return "" if path is None else local_path(AsyncCheckpointManager.safe_loadpath(path))


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """What the first does not have comes from the second."""
    return {**second, **first}
