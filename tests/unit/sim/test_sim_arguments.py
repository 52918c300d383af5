"""What Python code gives `simulate`: the natural calls work, and the others are one line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sim_helpers import trace_of, written

import trainmaster as tm
from trainmaster.model.errors import InputError
from trainmaster.policies.fifo import Fifo

ONE = tm.Cluster.homogeneous(1, 8)
ROWS = ((0, 100, 8), (0, 100, 8), (10, 50, 4))
WEIGHED = "nodes: [{count: 1, gpus: 8}]\ntenants: {red: 2}\n"


class TestClusters:
    def test_a_cluster_file_as_it_is_read(self, tmp_path: Path) -> None:
        read = tm.read_cluster(written(tmp_path, "c.yaml", WEIGHED))
        trace = of_two_tenants()
        result = tm.simulate(trace, read, "drf", costs=tm.Costs(0, 0, 0), placement="pool")
        by_hand = tm.simulate(
            trace, read[0], "drf", costs=tm.Costs(0, 0, 0), placement="pool", weights={"red": 2.0}
        )
        without = tm.simulate(trace, read[0], "drf", costs=tm.Costs(0, 0, 0), placement="pool")
        assert list(result.jobs["finish_s"]) == list(by_hand.jobs["finish_s"])
        assert list(result.jobs["finish_s"]) != list(without.jobs["finish_s"])

    def test_weights_are_given_once(self, tmp_path: Path) -> None:
        read = tm.read_cluster(written(tmp_path, "c.yaml", WEIGHED))
        with pytest.raises(InputError, match="weights of tenants are in the options and in the cluster file"):
            tm.simulate(trace_of(*ROWS), read, weights={"red": 1})
        with pytest.raises(InputError, match="a cluster file also holds weights"):
            tm.simulate(trace_of(*ROWS), [read, read])  # type: ignore[list-item]

    def test_several_in_any_order_that_can_be_read(self) -> None:
        several = (tm.Cluster.homogeneous(nodes, 8) for nodes in (1, 2))
        result = tm.simulate(trace_of(*ROWS), several)  # type: ignore[arg-type]
        assert [run["cluster"]["nodes"] for run in result.runs] == [1, 2]


def of_two_tenants() -> tm.Trace:
    """Red and blue want the whole cluster all the time, in gangs of 2."""
    trace = trace_of(*((number // 2, 100, 2) for number in range(16)))
    jobs = [replace(job, tenant="red" if job.sequence % 2 else "blue") for job in trace.jobs]
    return tm.Trace(jobs, trace.truths)


@pytest.mark.parametrize("seed", [np.int64(3), [np.int64(3)], np.array([3]), (3,), range(3, 4)])
def test_seeds_of_any_whole_kind(seed: Any) -> None:
    result = tm.simulate(trace_of(*ROWS), ONE, seed=seed)
    assert result.document["seed"] == 3
    assert type(result.document["seed"]) is int


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    costs = tm.Costs(np.float32(0), np.int64(2), 0)  # type: ignore[arg-type]
    result = tm.simulate(trace_of(*ROWS), ONE, costs=costs, jobs=np.int64(1), warmup_s=np.float32(1))  # type: ignore[arg-type]
    assert result.runs[0]["costs"]["restore_s"] == 2
    result.write(tmp_path / "out")
    assert (tmp_path / "out" / "summary.json").is_file()


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"seed": 1.5}, "seed is 1.5, not a whole number >= 0"),
        ({"seed": "3"}, "seed is '3', not a whole number >= 0"),
        ({"seed": True}, "seed is True, not a whole number >= 0"),
        ({"seed": None}, "seed is None, not a whole number >= 0"),
        ({"seed": [0, -1]}, "seed is -1, not a whole number >= 0"),
        ({"jobs": 1.5}, "jobs is 1.5, not a whole number"),
        ({"jobs": True}, "jobs is True, not a whole number"),
        ({"jobs": "2"}, "jobs is '2', not a whole number"),
        ({"costs": {"restore_s": 1}}, "costs is {'restore_s': 1} (tm.Costs("),
        ({"costs": None}, "costs is None (tm.Costs("),
        ({"validate": "no"}, "validate is 'no' (True or False)"),
        ({"validate": 1}, "validate is 1 (True or False)"),
        ({"strict": "no"}, "strict is 'no' (True or False)"),
        ({"predictor": None}, "predictor is None (give its name)"),
        ({"placement": ["pack"]}, "unknown placement ['pack']"),
        ({"relax_s": "60"}, "placement.relax is '60' (give seconds >= 0)"),
        ({"warmup_s": "60"}, "warmup_s is '60' (give seconds >= 0)"),
        ({"warmup_s": float("nan")}, "warmup_s is nan (give seconds >= 0)"),
        ({"cooldown_s": None}, "cooldown_s is None (give seconds >= 0)"),
        ({"cooldown_s": float("inf")}, "cooldown_s is inf (give seconds >= 0)"),
        ({"knobs": {"backfill": "easy"}}, "knobs is {'backfill': 'easy'}, not knobs by policy ("),
        ({"knobs": None}, "knobs is None, not knobs by policy ("),
        ({"weights": ["red"]}, "weights is ['red'] (give numbers by tenant"),
        ({"weights": {"red": "2"}}, "weight of tenant 'red' is '2' (give numbers from 1e-6 to 1e6)"),
        ({"weights": {1: 2.0}}, "weights is {1: 2.0} (give numbers by tenant"),
        ({"options": {"validate": True}}, "options is {'validate': True}, not Options ("),
        (
            {"profile": "speeds.yaml"},
            "profile is 'speeds.yaml', not a Profile (load it: tm.load_profile(path))",
        ),
        ({"failures": [1]}, "failures is [1], not a path ("),
        ({"events": 7}, "events is 7, not a path ("),
        ({"policy": 5}, "policy is 5 (give its name, its file, or the class itself)"),
        ({"policy": ["fifo", None]}, "policy is None ("),
        ({"policy": Fifo()}, "policy is an object of Fifo (give its name, its file, or the class itself)"),
        ({"policy": int}, "policy is <class 'int'> ("),
    ],
)
def test_what_is_of_another_kind(settings: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError) as caught:
        tm.simulate(trace_of(*ROWS), ONE, **settings)
    assert str(caught.value).startswith(what)


@pytest.mark.parametrize("value", ["6", None, True, -1, float("nan"), [6]])
def test_costs_are_numbers(value: Any) -> None:
    with pytest.raises(InputError, match="restore_s is"):
        tm.Costs(restore_s=value)


def test_a_folder_of_events_by_name(tmp_path: Path) -> None:
    tm.simulate(trace_of(*ROWS), ONE, events=str(tmp_path))
    assert (tmp_path / "0.jsonl").is_file()
