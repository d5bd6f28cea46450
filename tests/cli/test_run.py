# SPDX-License-Identifier: Apache-2.0
"""gc, promote, pin, unpin: the verbs that look after the checkpoints of a run."""

import json
import shutil

import pytest

ATTEMPT = {"attempt": "0123456789abcdef" * 2, "host": "h", "process": 1, "boot_id": "b",
           "started": "2026-01-01T00:00:00", "ranks": 1, "run_id": "", "generation": 0,
           "mark_sha256": None, "prefixes": []}  # fmt: skip


def mark(path, step, **members):
    text = {"step": step, "timestamp": "2026-01-02T03:04:05", "is_temporary": False,
            "cairn": {"name": path.name, "number": step, "history": [[0, step - 1]]}} | members
    (path / "metadata.json").write_text(json.dumps(text))


@pytest.fixture
def run(originals, tmp_path):
    """run-100 to run-500; the losses are 3, 1, 2, none and 4."""
    folder = tmp_path / "run"
    for step, loss in [(100, 3), (200, 1), (300, 2), (400, None), (500, 4)]:
        path = shutil.copytree(originals / "run/run-10", folder / f"run-{step}")
        mark(path, step, **({} if loss is None else {"metrics": {"loss": loss}}))
    return folder


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def tell(document):
    return {c["step"]: ("+" if c["keep"] else "-") + c["rule"] for c in document["checkpoints"]}


def test_gc_without_rules_removes_nothing(cairn, run):
    document = cairn("gc", run, "--json").document
    assert tell(document) == {500: "+latest", 400: "+no-rule", 300: "+no-rule", 200: "+no-rule",
                              100: "+no-rule"}  # fmt: skip
    assert document["leftovers"] == [] and document["removed_bytes"] == 0
    assert len(names(run)) == 5


def test_a_dry_run_says_what_the_real_one_does(cairn, run):
    words = "gc", run, "--keep-last", 1, "--keep-every", 400, "--best-k", 1, "--metric", "loss"
    planned = cairn(*words, "--dry-run", "--json").document
    assert planned["dry_run"] and len(names(run)) == 5
    done = cairn(*words, "--json").document
    assert not done["dry_run"]
    assert tell(planned) == tell(done) == {500: "+latest", 400: "+keep-every", 300: "-unwanted",
                                           200: "+best", 100: "-unwanted"}  # fmt: skip
    assert planned["removed_bytes"] == done["removed_bytes"] > 0
    assert names(run) == ["run-200", "run-400", "run-500"]
    assert not (run / ".cairn-trash").exists()
    assert tell(cairn(*words, "--json").document) == {500: "+latest", 400: "+keep-every",
                                                      200: "+best"}  # fmt: skip


def test_gc_takes_the_largest_metric_with_mode_max(cairn, run):
    mark(run / "run-500", 500)
    cairn("gc", run, "--best-k", 1, "--metric", "loss", "--mode", "max")
    assert names(run) == ["run-100", "run-500"]


def test_gc_prints_each_with_its_rule(cairn, run):
    lines = cairn("gc", run, "--keep-last", 2, "--dry-run").out.splitlines()
    assert lines[1].split()[:3] == ["keep", "500", "run-500"] and "latest" in lines[1]
    assert "one of the last 2" in lines[2]
    assert lines[3].split()[:3] == ["remove", "300", "run-300"] and "no rule keeps it" in lines[3]
    assert lines[-1].startswith("would remove 3 of 5 checkpoints")
    assert cairn("gc", run, "--keep-last", 2).out.splitlines()[-1].startswith("removed 3 of 5")


def test_gc_meets_a_quota_oldest_first(cairn, run):
    each = cairn("gc", run, "--json").document["kept_bytes"] // 5
    document = cairn("gc", run, "--max-bytes", 3 * each, "--json").document
    assert tell(document) == {500: "+latest", 400: "+no-rule", 300: "+no-rule", 200: "-max-bytes",
                              100: "-max-bytes"}  # fmt: skip
    assert document["kept_bytes"] <= 3 * each
    assert tell(cairn("gc", run, "--max-bytes", 0, "--json").document)[500] == "+latest"
    assert names(run) == ["run-500"]


def test_gc_frees_space_on_the_disk(cairn, run):
    assert len(cairn("gc", run, "--min-free", 1, "--json").document["checkpoints"]) == 5
    assert names(run) == [f"run-{step}00" for step in range(1, 6)]
    cairn("gc", run, "--min-free", "8EiB")
    assert names(run) == ["run-500"]


def test_gc_removes_what_jobs_left(cairn, run):
    mark(run / "run-300", 300, is_temporary=True)
    dead = run / "run-200" / (".cairn-" + ATTEMPT["attempt"])
    (dead / "new").mkdir(parents=True)
    (dead / "attempt.json").write_text(json.dumps(ATTEMPT))
    (run / ".cairn-trash/x").mkdir(parents=True)
    for dry in (["--dry-run"], []):
        document = cairn("gc", run, "--json", *dry).document
        assert tell(document)[300] == "-temporary"
        assert tell(document)[200] == "+torn"
        found = [(left["kind"], left["path"], left["problem"]) for left in document["leftovers"]]
        assert found == [("trash", f"{run}/.cairn-trash", None), ("attempt", str(dead), None)]
        assert dead.exists() == bool(dry)
    assert names(run) == ["run-100", "run-200", "run-400", "run-500"]
    assert sorted(path.name for path in run.glob(".cairn-*")) == [".cairn-lock"]
    assert (run / "run-200/metadata.json.torn").exists()


def test_gc_says_what_it_could_not_remove(cairn, run):
    index = run / "run-100/tensorstore_index.json"
    theirs = json.loads(index.read_text())
    theirs["prefixes"]["theirs"] = []
    index.write_text(json.dumps(theirs))
    done = cairn("gc", run, "--keep-last", 1, status=3)
    assert "holds what cairn did not save" in done.out
    assert names(run) == ["run-100", "run-500"]


def test_gc_never_touches_what_others_wrote(cairn, fixtures, tmp_path):
    run = shutil.copytree(fixtures / "eformer_run/checkpoint", tmp_path / "run")
    before = sorted(run.rglob("*"))
    document = cairn("gc", run, "--keep-last", 1, "--max-bytes", 0, "--json").document
    assert {c["rule"] for c in document["checkpoints"]} == {"latest", "foreign"}
    assert sorted(run.rglob("*")) == before


@pytest.mark.parametrize("words", [("--keep-last", 0), ("--best-k", 2), ("--metric", "loss"),
                                   ("--max-bytes", "much"), ("--mode", "best"),
                                   ("--keep-every", "x")])  # fmt: skip
def test_gc_refuses_rules_that_make_no_sense(cairn, run, words):
    cairn("gc", run, *words, status=2)
    assert len(names(run)) == 5


def test_gc_of_nothing_fails(cairn, tmp_path):
    assert "[fs/not-found]" in cairn("gc", tmp_path / "nothing", status=3).error
    assert cairn("gc", tmp_path, "--json").document["checkpoints"] == []


def test_a_promoted_checkpoint_is_kept(cairn, run):
    for step in (300, 400):
        mark(run / f"run-{step}", step, is_temporary=True, mine=[1])
    assert cairn("promote", run / "run-300").out == f"{run}/run-300 is permanent now\n"
    assert cairn("promote", run / "run-300", "--json").document["promoted"] is False
    promoted = json.loads((run / "run-300/metadata.json").read_text())
    assert promoted == {"step": 300, "timestamp": "2026-01-02T03:04:05", "is_temporary": False,
                        "mine": [1], "cairn": promoted["cairn"]}
    assert promoted["cairn"]["number"] == 300
    cairn("gc", run)
    assert names(run) == ["run-100", "run-200", "run-300", "run-500"]


def test_promote_needs_a_mark(cairn, originals):
    assert "[mark/none]" in cairn("promote", originals / "zarr2", status=3).error


def test_a_pinned_checkpoint_is_kept_until_it_is_unpinned(cairn, run):
    cairn("pin", run / "run-100", "--reason", "for the paper")
    assert (run / "run-100/.cairn-pin").read_text() == "for the paper"
    mark(run / "run-100", 100)
    listed = cairn("ls", run, "--json").document["checkpoints"]
    assert {c["step"]: c["pinned"] for c in listed}[100]
    assert cairn("ls", run).out.splitlines()[-1].endswith("pinned")
    cairn("gc", run, "--keep-last", 1)
    assert names(run) == ["run-100", "run-500"]
    assert cairn("unpin", run / "run-100").out == f"{run}/run-100 is not pinned any more\n"
    assert cairn("unpin", run / "run-100", "--json").document["pinned"] is False
    cairn("gc", run, "--keep-last", 1)
    assert names(run) == ["run-500"]


def test_pin_refuses_what_is_no_checkpoint(cairn, tmp_path):
    assert "[pin/not-a-checkpoint]" in cairn("pin", tmp_path, status=3).error


@pytest.mark.parametrize("verb", [("gc", "--keep-last", 1), ("ls",), ("promote",), ("pin",),
                                  ("unpin",), ("watch", "--once"), ("request-save",),
                                  ("show",), ("verify",)])
def test_a_place_elsewhere_is_no_directory_here(cairn, command, run, verb):
    """gs://bucket/run must not lead to the directory run beside the program."""
    done = cairn(verb[0], "gs://bucket/run", *verb[1:], status=3, cwd=run.parent)
    assert "gs://bucket/run" in done.error and "mounted file system" in done.error
    assert len(names(run)) == 5
    assert not list(run.rglob(".cairn-pin")) and not (run / ".cairn-request.json").exists()


def test_ls_shows_what_the_run_went_back_behind(cairn, run):
    mark(run / "run-200", 200, cairn={"name": "run-200", "number": 501, "history": [[0, 100]]})
    listed = cairn("ls", run, "--json").document["checkpoints"]
    assert [(c["step"], c["abandoned"]) for c in listed] == [
        (200, False), (100, False), (500, True), (400, True), (300, True)]
    lines = cairn("ls", run).out.splitlines()
    assert "abandoned" not in lines[2] and "abandoned" in lines[3]
    shown = cairn("show", run)
    assert "run-200" in shown.error and "run-500 has a higher step" in shown.error
    document = cairn("gc", run, "--keep-last", 2, "--json").document
    assert tell(document) == {200: "+latest", 100: "+keep-last", 500: "+keep-last",
                              400: "+keep-last", 300: "+keep-last"}, "one was saved since, of two"
    document = cairn("gc", run, "--keep-last", 1, "--json").document
    assert tell(document) == {200: "+latest", 100: "-unwanted", 500: "-unwanted", 400: "-unwanted",
                              300: "-unwanted"}


def test_gc_leaves_copies_and_saves_by_hand(cairn, run):
    shutil.copytree(run / "run-100", run / "best-model")
    mark(run / "run-200", 200, cairn=None)
    cairn("gc", run, "--keep-last", 1)
    assert names(run) == ["best-model", "run-200", "run-500"]
