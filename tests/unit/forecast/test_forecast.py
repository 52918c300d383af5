"""Forecasts of small states whose answer is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trainmaster as tm
from trainmaster.forecast import Forecast, Spread, forecast
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, Simulation, policy_of, run
from trainmaster.sim.snapshot import Snapshot, lines, parse
from trainmaster.testing.scenario_features import EVERY
from trainmaster.testing.schedules import FREE, Case

ROWS = [("a", 0, 100, 4), ("b", 10, 50, 4), ("c", 20, 30, 2), ("d", 30, 5, 2)]


def state(
    rows: list[tuple[str, float, float, float]],
    at: float,
    policy: str = "fifo",
    *,
    cluster: Cluster | None = None,
    past: bool = False,
    case: Case | None = None,
    **options: Any,
) -> Snapshot:
    """The state at an instant, of a cluster of 4 GPUs where nothing else is said."""
    case = case or Case.of(nodes=1, gpus_per_node=4, rows=rows, cluster=cluster)
    setup = Setup(case.jobs, case.durations, case.cluster, policy, Options(**{"costs": FREE, **options}))
    found: list[str] = []

    def keep(instant: int, simulation: Simulation, ledger: Ledger) -> None:
        found.extend(lines(instant, simulation, ledger if past else None))

    run(setup, policy_of(policy, setup.options), snapshots=[round(at * 1e9)], keep=keep)
    return parse(found)


def starts(found: Forecast) -> dict[str, float | None]:
    return {each.job: each.start.p50 for each in found.jobs}


@pytest.mark.parametrize("policy", EVERY)
def test_an_oracle_forecasts_what_will_happen(policy: str) -> None:
    """Nothing is left to chance but who comes, and nobody does."""
    case = Case.busy(5)
    options = Options("oracle", costs=Costs(), validate=True)
    setup = Setup(case.jobs, case.durations, case.cluster, policy, options)
    last = case.jobs[-1].submit / 1e9 + 1
    snapshot = state([], last, policy, case=case, predictor="oracle", costs=Costs())
    first: dict[str, int] = {}

    def watch(now: int, events: Any, actions: Any) -> None:
        for action in actions:
            if type(action).__name__ == "Start" and now > last * 1e9:
                first.setdefault(action.job_id, now)

    run(setup, policy_of(policy, options), watch=watch)
    assert len(snapshot.pending()) > 3
    found = forecast(snapshot, draws=2)
    for each in found.jobs:
        assert each.start.p10 == each.start.p90 == pytest.approx(first[each.job] / 1e9 - last)
        assert each.share == 1.0 and each.reason


def test_starts_ends_and_shares_of_a_queue() -> None:
    found = forecast(state(ROWS, 40, predictor="oracle"), draws=3)
    assert starts(found) == {"b": 60.0, "c": 110.0, "d": 110.0}
    assert {each.job: each.end.p50 for each in found.jobs} == {"b": 110.0, "c": 140.0, "d": 115.0}
    assert [each.waited_s for each in found.jobs] == [30.0, 20.0, 10.0]
    assert (found.now_s, found.draws, found.arrivals) == (40.0, 3, False)


def test_a_job_that_never_fits_holds_up_no_run() -> None:
    cluster = Cluster((Node("n0", 4), Node("n1", 4)))
    case = Case.of(rows=[("a", 0, 100, 4), ("big", 5, 10, 8), ("c", 20, 10, 4)], cluster=cluster)
    setup = Setup(case.jobs, case.durations, cluster, "fifo(backfill=greedy)", Options("oracle", costs=FREE))
    simulation = Simulation(setup, policy_of(setup.policy, setup.options), case.jobs)
    from trainmaster.model.event import NodeDown

    simulation.clock.announce(1, NodeDown(1))
    while (now := simulation.clock.next_instant()) is not None and now <= 30e9:
        simulation.step(now)
    found = forecast(parse(lines(30 * 10**9, simulation)), draws=2)
    big = next(each for each in found.jobs if each.job == "big")
    assert (big.start, big.share) == (Spread(None, None, None), 0.0)
    assert starts(found)["c"] == 70.0


def test_the_horizon_ends_a_run() -> None:
    found = forecast(state(ROWS, 40, predictor="oracle"), draws=2, horizon_s=80)
    assert starts(found) == {"b": 60.0, "c": None, "d": None}
    assert [each.share for each in found.jobs] == [1.0, 0.0, 0.0]


def test_one_job_alone() -> None:
    found = forecast(state(ROWS, 40, predictor="oracle"), draws=2, only="c")
    assert starts(found) == {"c": 110.0}


def test_a_new_job_waits_for_its_queue() -> None:
    cluster = Cluster(
        (Node("n0", 4),), queues=QueueTree((Queue("q", guaranteed=4000), Queue("r", limit=1000), Queue("s")))
    )
    case = Case.of(rows=ROWS, cluster=cluster).changed(lambda job: _in_queue(job, "q"))
    snapshot = state([], 40, "standard", case=case, predictor="oracle")
    found = {each.queue: each for each in forecast(snapshot, draws=2, submit=2).queues}
    assert found.keys() == {"q", "r", "s"}
    assert found["r"].share == 0.0 and found["r"].wait.p50 is None, "above its limit"
    assert found["q"].share == 1.0 and found["q"].wait.p50 is not None


def _in_queue(job: Any, queue: str) -> Any:
    from dataclasses import replace

    return replace(job, tenant=queue)


def busy() -> Snapshot:
    return state([], 900, "standard", case=Case.busy(3, jobs=60), past=True, costs=Costs())


def test_the_seed_settles_a_forecast_and_processes_change_nothing() -> None:
    one = forecast(busy(), draws=4, seed=7, submit=1)
    assert one.as_dict() == forecast(busy(), draws=4, seed=7, submit=1, jobs=2).as_dict()
    assert one.as_dict() != forecast(busy(), draws=4, seed=8, submit=1).as_dict()
    assert one.arrivals and all(each.share for each in one.jobs)


def test_who_waits_sooner_or_later_depends_on_the_draw() -> None:
    found = forecast(busy(), draws=8)
    assert any(each.start.p10 != each.start.p90 for each in found.jobs)
    for each in found.jobs:
        for spread in (each.start, each.end):
            values = [value for value in (spread.p10, spread.p50, spread.p90) if value is not None]
            assert values == sorted(values)


def test_the_true_durations_are_not_looked_at() -> None:
    """The forecast of a history doesn't change when the processes' work does."""
    from dataclasses import replace

    snapshot = busy()
    other = {
        **snapshot.executor,
        "processes": [{**p, "work": p["work"] * 7} for p in snapshot.executor["processes"]],
    }
    changed = replace(snapshot, executor=other)
    assert forecast(snapshot, draws=2).as_dict() == forecast(changed, draws=2).as_dict()


def test_first_gets_the_answer_of_one_run() -> None:
    seen: list[Forecast] = []
    done: list[tuple[int, int]] = []
    found = forecast(busy(), draws=3, first=seen.append, progress=lambda *counts: done.append(counts))
    assert len(seen) == 1 and seen[0].draws == 1
    assert starts(seen[0]).keys() == starts(found).keys()
    assert done == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"draws": 0}, "0 draws by 1 processes (give at least 1 of both)"),
        ({"horizon_s": 0}, "the horizon is 0 s (give seconds above 0)"),
        ({"submit": 1.5}, "--submit 1.5 (give a whole number of GPUs, or a part of one)"),
        ({"submit": 0}, "--submit 0"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        forecast(state(ROWS, 40), **arguments)
    assert message in str(raised.value)


def test_from_python(tmp_path: Path) -> None:
    trace = tm.synthesize("philly-like", days=0.5, load=1.5, nodes=2, seed=0)
    cluster = tm.Cluster.homogeneous(2, 8)
    tm.simulate(trace, cluster, "las", snapshot_at=[30_000], states=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["state-30000.jsonl"]
    with pytest.raises(InputError, match="snapshot_at writes files"):
        tm.simulate(trace, cluster, "las", snapshot_at=[30_000])
