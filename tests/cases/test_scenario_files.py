"""Case files: what is refused, with file, line and key; what each key needs; the schema for editors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trainmaster.model.errors import InputError
from trainmaster.testing import scenario_keys
from trainmaster.testing.scenario import attempts, case_files, load
from trainmaster.testing.scenario_features import EVERY, claims, existing
from trainmaster.testing.scenario_model import Bound, ReaderScene, Scene
from trainmaster.testing.scenario_yaml import parse

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]

GOOD = """\
title: T
cluster: 2 x 4
jobs:
  a: {runs: 10, gpus: 2}
  b: {runs: 15m, count: 3, every: 5, pods: 2 x 1}
"""


@pytest.fixture
def scene_of(tmp_path: Path) -> Any:
    """Loads the first part of a text."""

    def scene(text: str) -> Scene:
        path = tmp_path / "case.yaml"
        path.write_text(text, encoding="utf-8")
        part = load(path).parts[0]
        assert isinstance(part, Scene)
        return part

    return scene


# -- what is read -----------------------------------------------------------------------------


def test_copies_are_named_and_spaced(scene_of: Any) -> None:
    scene = scene_of(GOOD)
    assert [(job.name, job.at, job.runs, job.milli) for job in scene.jobs] == [
        ("a", 0, 10 * 10**9, 2000),
        ("b-0", 0, 900 * 10**9, 2000),
        ("b-1", 5 * 10**9, 900 * 10**9, 2000),
        ("b-2", 10 * 10**9, 900 * 10**9, 2000),
    ]
    assert scene.groups == {"b": ("b-0", "b-1", "b-2")}


def test_the_name_of_an_entry_stands_for_its_copies(scene_of: Any) -> None:
    scene = scene_of(
        GOOD + "expect: {at: 1m, pending: [b, a], gpus: {b: 2}}\nnever: [{b: running, a: partly}]\n"
    )
    (moment,) = scene.moments
    assert moment.at == 60 * 10**9
    assert moment.checks["pending"] == ("b-0", "b-1", "b-2", "a")
    assert moment.checks["gpus"] == {f"b-{copy}": Bound(2000) for copy in range(3)}
    assert scene.never[0].states == (*((f"b-{copy}", "running") for copy in range(3)), ("a", "partly"))


def test_jobs_come_in_the_order_of_submission_and_then_of_the_file(scene_of: Any) -> None:
    jobs = "jobs:\n  z: {at: 5, runs: 1}\n  no: {runs: 1}\n  '007': {runs: 1}\n"
    assert [job.name for job in scene_of(f"title: T\ncluster: 1 x 1\n{jobs}").jobs] == ["no", "007", "z"]


def test_lower_numbers_can_be_more_urgent(scene_of: Any) -> None:
    text = "title: T\nurgent: low\ncluster: 1 x 1\njobs: {a: {runs: 1, priority: 30}}\n"
    assert scene_of(text).jobs[0].priority == -30


def test_nodes_are_named_as_everywhere(scene_of: Any) -> None:
    entries = "[2 x 8 V100, {gpus: 4}, {name: big, gpus: 16}, {name: old, count: 2, gpus: 1, type: K80}]"
    nodes = scene_of(f"title: T\ncluster: {entries}\njobs: {{a: {{runs: 1}}}}\n").cluster.nodes
    assert [(node.name, node.gpus, node.gpu_type) for node in nodes] == [
        ("node-0", 8, "V100"), ("node-1", 8, "V100"), ("node-2", 4, ""),
        ("big", 16, ""), ("old-0", 1, "K80"), ("old-1", 1, "K80"),
    ]  # fmt: skip


def test_a_cluster_file_is_found_beside_the_case(scene_of: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("nodes: [{count: 3, gpus: 2}]\ntenants: {red: 2}\n")
    scene = scene_of("title: T\ncluster: mine.yaml\njobs: {a: {runs: 1}}\n")
    assert scene.cluster.gpus == 6 and scene.weights == {"red": 2.0}


def test_queues_become_a_tree_and_weights(scene_of: Any) -> None:
    queues = (
        "queues:\n  all: {}\n  a: {parent: all, guaranteed: 0.5, weight: 3}\n"
        "  b: {parent: all, reclaim: none}\n"
    )
    scene = scene_of(
        f"title: T\nreclaim: fair-share\ncluster: 1 x 1\n{queues}jobs: {{j: {{runs: 1, queue: a}}}}\n"
    )
    tree = scene.cluster.queues
    assert [(queue.name, queue.guaranteed, queue.reclaim) for queue in tree.path("a")] == [
        ("a", 500, "fair-share"),
        ("all", 0, "fair-share"),
    ]
    assert tree["b"].reclaim == "none"
    assert scene.weights == {"all": 1.0, "a": 3.0, "b": 1.0}


def test_a_later_part_takes_over_all_but_what_happens(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    first = (
        GOOD
        + "number: 7\nround: 60\npolicies: fifo\nsteps: [{at: 1, cancel: a}]\nfinally: {finish: {a: 1}}\n"
    )
    path.write_text(f"{first}---\ntitle: U\nround: 30\nexpect: [{{at: 3, pending: a}}]\n")
    one, other = load(path).parts
    assert isinstance(one, Scene) and isinstance(other, Scene)
    assert (other.title, other.jobs, other.policies) == ("U", one.jobs, ("fifo",))
    assert (one.round, other.round) == (60 * 10**9, 30 * 10**9)
    assert other.steps == () and [moment.at for moment in other.moments] == [3 * 10**9]
    assert load(path).number == "7"


def test_bounds() -> None:
    values = dict(parse("{a: 5, b: '<= 1m', c: '>2', d: < 0.5h}", "x")[0].items())
    read = scenario_keys.TIME_BOUND.read
    assert [read(values[key]) for key in "abcd"] == [
        Bound(5 * 10**9), Bound(60 * 10**9, "<="), Bound(2 * 10**9, ">"), Bound(1800 * 10**9, "<"),
    ]  # fmt: skip
    assert [Bound(2, relation).holds(2) for relation in ("=", "<=", ">=", "<", ">")] == [True] * 3 + [
        False
    ] * 2


# -- what is refused ---------------------------------------------------------------------------

REFUSED = [
    ("", "case.yaml: is empty"),
    ("title: [", "row 1"),
    ("title: T\ncluster: 2 x 4\n", "row 1: jobs is missing (what is submitted)"),
    ("title: T\ntitle: U\n", "row 2, column title: key 'title' stands twice"),
    (GOOD + "polices: fifo\n", "row 6, column polices: unknown key 'polices' (did you mean 'policies'?)"),
    (GOOD + "  c: {rums: 1}\n", "row 6, column jobs.c.rums: unknown key 'rums' (did you mean 'runs'?)"),
    (GOOD + "  c: {gpus: 1}\n", "row 6, column jobs.c: runs is missing (how long it really runs"),
    (GOOD + "  c: {runs: 0}\n", "row 6, column jobs.c: it runs for 0 seconds (give a time above 0)"),
    (
        GOOD + "  c: {runs: soon}\n",
        "row 6, column jobs.c.runs: 'soon' is not a time (seconds, or with a unit",
    ),
    (GOOD + "  c: {runs: 15M}\n", "'15M' is not a time"),
    (GOOD + "  c: {runs: .nan}\n", "'.nan' is not a time"),
    (GOOD + "  c: {runs: -1}\n", "-1 is out of range (0 to 1e+09 seconds)"),
    (GOOD + "  c: {runs: 1, gpus: 0}\n", "column jobs.c: it asks for 0 GPUs"),
    (GOOD + "  c: {runs: 1, gpus: 0.0005}\n", "0.0005 GPUs (a thousandth of a GPU is the smallest part)"),
    (GOOD + "  c: {runs: 1, gpus: 1, pods: 1 x 1}\n", "gpus and pods exclude each other"),
    (
        GOOD + "  c: {runs: 1, pods: 4}\n",
        "column jobs.c.pods: '4' is not of the form P x G (for example 4 x 8)",
    ),
    (GOOD + "  c: {runs: 1, every: 5}\n", "every without count (count: 10)"),
    (GOOD + "  c: {runs: 1, after: d}\n", "column jobs.c: there is no job 'd'"),
    (GOOD + "  c: {runs: 1, priority: high}\n", "'high' is not a whole number"),
    (GOOD + "  c: {runs: 1, preemptible: maybe}\n", "'maybe' is unknown (known: false, true)"),
    (GOOD + "  b-1: {runs: 1}\n", "row 6, column jobs.b-1: there is a job 'b-1' already"),
    (
        GOOD + "expect: {at: 1, running: bb}\n",
        "row 6, column expect.running: there is no job 'bb' (did you mean",
    ),
    (
        GOOD + "expect: {at: 1, nodes: {a: node-7}}\n",
        "column expect.nodes.a: there is no node 'node-7' (did you",
    ),
    (GOOD + "expect: {at: 1, free: {node-7: 1}}\n", "column expect.free.node-7: there is no node 'node-7'"),
    (GOOD + "expect: {at: 1, count: {runing: 1}}\n", "there is no state 'runing' (did you mean 'running'?)"),
    (GOOD + "expect: {at: 1, allocated: {red: 1}}\n", "there is no queue 'red'"),
    (GOOD + "expect: {at: 1, evictions: -1}\n", "column expect.evictions: '-1' is not a count"),
    (GOOD + "expect: {running: a}\n", "row 6, column expect: at is missing"),
    (
        GOOD + "expect: [{at: 1}, {at: 2, running: [a, c]}]\n",
        "column expect[2].running[2]: there is no job 'c'",
    ),
    (GOOD + "finally: {start: {c: 1}}\n", "column finally.start.c: there is no job 'c'"),
    (GOOD + "never: [{a: runing}]\n", "column never[1].a: 'runing' is unknown (did you mean 'running'?)"),
    (GOOD + "never: [{c: running}]\n", "column never[1].c: there is no job 'c'"),
    (GOOD + "steps: [{at: 1}]\n", "column steps[1]: a step is one thing that happens (one of cancel, fail"),
    (GOOD + "steps: [{at: 1, cancel: a, fail: node-0}]\n", "a step is one thing that happens"),
    (GOOD + "steps: [{at: 1, fail: a}]\n", "column steps[1].fail: there is no node 'a'"),
    (GOOD + "steps: [{at: 1, resize: a}]\n", "resize and to go together"),
    (GOOD + "until: 5\nexpect: {at: 6, running: a}\n", "is looked at after the end of the case"),
    (GOOD + "needs: quotas\n", "column needs: 'quotas' is unknown (did you mean 'quota'?)"),
    (GOOD + "placement: pac\n", "'pac' is unknown (did you mean 'pack'?)"),
    (GOOD + "costs: {stop: 5}\n", "column costs.stop: unknown key 'stop'"),
    (GOOD + "queues: {red: {}}\n", "column jobs.a: there is no queue ''"),
    (
        GOOD + "queues: {red: {guaranteed: 4, limit: 2}}\n",
        "column queues.red: queue red is guaranteed 4 GPUs, above",
    ),
    (
        GOOD + "queues: {red: {parent: blue}}\n",
        "column queues: queue red stands below 'blue', which is no queue",
    ),
    (GOOD + "---\ntitle: U\nnumber: 8\n", "row 8, column number: only the first part of a file has a number"),
    (GOOD + "kind: clusters\n", "column kind: 'clusters' is unknown (did you mean 'cluster'?)"),
    (
        GOOD.replace("2 x 4", "two nodes"),
        "row 2, column cluster: 'two nodes' is no cluster (4 x 8, 4 x 8 V100, or",
    ),
    (GOOD.replace("2 x 4", "[{gpu: 4}]"), "column cluster[1].gpu: unknown key 'gpu' (did you mean 'gpus'?)"),
    (GOOD.replace("2 x 4", "[{name: n, gpus: 1}, {name: n, gpus: 1}]"), "node name 'n' stands twice"),
    (GOOD.replace("2 x 4", "away.yaml"), "away.yaml: can't be read: No such file or directory"),
    ("kind: reader\ntitle: T\nread: a\nfiles: {../a: x}\nexpect: {}\n", "column files.../a: lies outside"),
    ("kind: process\ntitle: T\nrun: rm -rf /\nexpect: {}\n", "column run: not a command of trainmaster"),
    ("kind: process\ntitle: T\nrun: trainmaster 'x\nexpect: {}\n", "column run: can't be split into words"),
    ("kind: reader\ntitle: T\nfiles: {a: b}\nexpect: {}\n", "read is missing (the file that is the trace)"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused_with_file_line_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)) as error:
        load(path)
    assert str(error.value).startswith(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_policy_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(GOOD + "policies: [fifo, strf]\n")
    with pytest.raises(InputError, match=r"column policies: unknown policy 'strf' \(did you mean 'srtf'\?\)"):
        attempts(load(path))


def test_a_folder_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no case \(\*\.yaml\) in the folder"):
        case_files([tmp_path])


def test_files_of_a_folder_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("10-b", "9-a", "words", "9b-c"):
        (tmp_path / f"{name}.yaml").touch()
    assert [path.stem for path in case_files([tmp_path])] == ["9-a", "9b-c", "10-b", "words"]


# -- what is needed ---------------------------------------------------------------------------


def test_features_that_exist_are_pinned() -> None:
    """A feature that comes moves cases from "not yet" to checked: take it up here."""
    assert existing() == (
        "backfill", "cancel", "costs", "drain", "earliest-start", "failures", "fair-share", "fractions",
        "gpu-types", "labels", "min-run", "pods", "preemption", "priorities", "quota", "reasons",
        "reservation", "rounds", "snapshot", "speeds", "topology",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("key", "feature"),
    [
        ("jobs: {j: {runs: 1, pods: 4 x 1, min_pods: 2}}", "elastic"),
        ("jobs: {j: {runs: 1, deadline: 5}}", "deadlines"),
        ("jobs: {i: {runs: 1}, j: {runs: 1, after: i}}", "dependencies"),
        ("jobs: {j: {runs: 1, queue: q}}\nqueues: {q: {limit: 1}}", "quota"),
        ("jobs: {j: {runs: 1, queue: q}}\nqueues: {q: {weight: 0}}", "quota"),
        ("jobs: {j: {runs: 1}}\nsteps: [{at: 1, drain: node-0}]", "drain"),
        ("jobs: {j: {runs: 1}}\nexpect: [{at: 1, reason: {j: no}}]", "reasons"),
        ("jobs: {j: {runs: 1}}\nfinally: {reason: {j: no}}", "reasons"),
        ("jobs: {j: {runs: 1}}\nmigration: true", "migration"),
    ],
)
def test_keys_tell_what_they_need(key: str, feature: str, scene_of: Any) -> None:
    assert feature in scene_of(f"title: T\ncluster: 2 x 4\n{key}\n").needs


def test_what_is_there_needs_nothing(scene_of: Any) -> None:
    weights = GOOD.replace("{runs:", "{queue: red, runs:") + "queues: {red: {weight: 2}}\n"
    assert scene_of(GOOD).needs == scene_of(weights).needs == ()


def test_policies_claim_what_their_parts_show() -> None:
    from trainmaster.policies.base import Policy
    from trainmaster.policies.registry import create

    assert claims(create("fifo")) == set()
    assert "reservation" in claims(create("fifo(backfill=conservative)"))
    assert "preemption" not in claims(create("priority(preempt=false)"))
    assert "fair-share" in claims(create("drf")) and "fair-share" not in claims(create("srtf"))

    class Declares(Policy):
        name = "declares"
        features = ("quota",)

    assert "quota" in claims(Declares())


def test_a_case_without_policies_runs_under_all_that_claim_its_needs(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(GOOD + "needs: reservation\nplacement: [pack, pool]\n")
    names = [(attempt.policy, attempt.placement) for attempt in attempts(load(path))]
    assert ("fifo(backfill=easy)", "pool") in names and ("fifo(backfill=conservative)", "pack") in names
    assert "sjf" not in {policy for policy, _ in names}
    path.write_text(GOOD)
    assert [attempt.policy for attempt in attempts(load(path))] == list(EVERY)


# -- the cases --------------------------------------------------------------------------------


def test_all_47_cases_are_there() -> None:
    numbers = [load(path).number for path in case_files([FOLDER])]
    assert numbers == sorted(numbers, key=int)
    assert len(numbers) == len(set(numbers)) == 47


def test_every_case_expects_something() -> None:
    """A part that asks for nothing would pass; only one that can't be written yet may."""
    for path in case_files([FOLDER]):
        for scene in load(path).parts:
            if isinstance(scene, Scene):
                assert scene.moments or scene.never or scene.needs, f"{path.name}: {scene.title}"
            elif isinstance(scene, ReaderScene):
                assert scene.expect
