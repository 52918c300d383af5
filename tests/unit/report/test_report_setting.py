"""The facts under "What was replayed"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_folder import edit_json

from trainmaster.model.errors import InputError
from trainmaster.report import load_records, setting, story

COSTS = {"checkpoint_s": 10, "restore_s": 20, "start_s": 30, "checkpoint_interval_s": 1800}


def facts(folder: Path) -> dict[str, str]:
    records = load_records(folder)
    return dict(setting.facts(records, story.compare(records)))


@pytest.fixture
def changed(copied: Callable[[], Path]) -> Callable[[Callable[[dict[str, Any]], object]], dict[str, str]]:
    """Facts of a folder whose summary was changed."""

    def change(edit: Callable[[dict[str, Any]], object]) -> dict[str, str]:
        folder = copied()
        edit_json(folder / "summary.json", edit)
        return facts(folder)

    return change


def in_runs(**values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda document: [run.update(values) for run in document["runs"]]


Changed = Callable[[Callable[[dict[str, Any]], object]], dict[str, str]]


def test_records_without_costs_still_load(folder: Path) -> None:
    found = facts(folder)
    assert not found.keys() & {"Restart costs", "Relaxation", "Warm-up", "Recorded in the log"}
    assert found["Cluster"] == "32 GPUs on 4 nodes" and found["Seed"] == "0"


def test_costs_are_told(changed: Changed) -> None:
    assert changed(in_runs(costs=COSTS))["Restart costs"] == (
        "start 30 s, restore 20 s, write a checkpoint when stopped 10 s; "
        "a running job saves its work every 30 m"
    )


def test_costs_that_differ_are_told_by_policy(changed: Changed) -> None:
    def change(document: dict[str, Any]) -> None:
        for run, start_s in zip(document["runs"], (5, None, 0, 5), strict=True):
            run["costs"] = {"start_s": start_s}

    assert changed(change)["Restart costs"] == "srtf: start 0 s; las: start 5 s; fifo: start 5 s"


def test_warm_up_and_relaxation_are_told_where_set(changed: Changed) -> None:
    found = changed(in_runs(relax_s=600, warmup_s=3600, cooldown_s=7200))
    assert found["Relaxation"] == "a job that has waited 10 m accepts any nodes with free GPUs"
    assert found["Warm-up"] == "jobs submitted in the first 1 h and the last 2 h are replayed but not counted"
    found = changed(in_runs(relax_s=None, warmup_s=0, cooldown_s=0))
    assert not found.keys() & {"Relaxation", "Warm-up"}


def test_recorded_waits_are_told(changed: Changed) -> None:
    found = changed(lambda document: document["trace"].update(recorded={"jobs": 256, "mean_wait_s": 1380}))
    assert found["Recorded in the log"] == "mean wait 23 m over 256 jobs"
    none = {"jobs": 0, "mean_wait_s": None}
    assert "Recorded in the log" not in changed(lambda document: document["trace"].update(recorded=none))


def test_a_sweep_lists_its_clusters_and_seeds(sweep_folder: Path) -> None:
    found = facts(sweep_folder)
    assert found["Clusters"] == (
        "24 GPUs on 3 nodes, 32 GPUs on 4 nodes and 48 GPUs on 6 nodes; shown above: 24 GPUs on 3 nodes"
    )
    assert found["Seed"] == "0 and 1" and "Cluster" not in found
    assert found["Work asked"].endswith("in that time on 3 nodes with seed 0")


def test_a_quiet_tail_explains_low_utilization(changed: Changed) -> None:
    def tail(makespan_s: float, inside: float | None) -> Callable[[dict[str, Any]], object]:
        def change(document: dict[str, Any]) -> None:
            document["trace"]["span_s"] = 86_400.0
            values = {"makespan_s": makespan_s, "utilization": 0.125, "utilization_in_span": inside}
            in_runs(**values)(document)

        return change

    assert changed(tail(15 * 86_400.0, 0.905))["Utilization"] == (
        "the last job ends 14 d after the last submission under srtf, and GPUs idle in that tail lower "
        "utilization over the makespan to 12.5 %; until the last submission, 90.5 % were in use"
    )
    assert "Utilization" not in changed(tail(15 * 86_400.0, None))
    assert "Utilization" not in changed(tail(15 * 86_400.0, 0.1))
    assert "Utilization" not in changed(tail(1.2 * 86_400.0, 0.9))


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (in_runs(costs={"start_s": "x"}), "costs.start_s"),
        (in_runs(costs=3), "costs"),
        (in_runs(relax_s="x"), "relax_s"),
    ],
)
def test_faulty_costs_are_named(
    changed: Changed, edit: Callable[[dict[str, Any]], object], place: str
) -> None:
    with pytest.raises(InputError, match=place.replace(".", r"\.")):
        changed(edit)
