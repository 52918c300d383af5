"""What bench/forecast.py measures, in a process of its own; prints one JSON object.

Usage: forecast_runs.py calibration TRACE | busy FOLDER

calibration: a week under `standard` with the history predictor on 40 nodes of 8 GPUs, a state every
6 hours; forecasts of jobs that wait over 10 minutes beside what happened. busy: writes a state of
1,000 nodes of 8 GPUs in which some 2,000 jobs wait and 4,000 run.
"""

from __future__ import annotations

import json
import random
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

import trainmaster as tm
from trainmaster.forecast import JobForecast, forecast
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.action import Action, Start
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.event import Event
from trainmaster.model.job import Job, Request
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.units import SECOND
from trainmaster.sim.options import Options
from trainmaster.sim.prepare import prepare
from trainmaster.sim.run import Setup, Simulation, policy_of, run
from trainmaster.sim.snapshot import lines, parse, write_snapshot

EVERY = 6 * 3_600 * SECOND
WAIT = 600.0
DRAWS, PROCESSES = 32, 2
HORIZON_S = 7 * 86_400.0
SIZES = (1, 1, 1, 1, 1, 1, 1, 2, 2, 8)


def calibration(path: str) -> dict[str, object]:
    """Forecasts and what became of them."""
    trace, cluster, options = tm.load_trace(path), Cluster.homogeneous(40, 8), Options()
    prepared = prepare(trace, [cluster], policy_of("standard", options))
    setup = Setup(prepared.jobs, prepared.durations, cluster, "standard", options)
    starts: dict[str, list[int]] = {}
    states: list[tuple[int, list[str]]] = []

    def watch(now: int, events: Sequence[Event], actions: Sequence[Action]) -> None:
        for action in actions:
            if type(action) is Start:
                starts.setdefault(action.job_id, []).append(now)

    def keep(at: int, simulation: Simulation, ledger: Ledger) -> None:
        states.append((at, lines(at, simulation, ledger)))

    first, last = (setup.jobs[at].submit for at in (0, -1))
    snapshots = range(first + EVERY, last, EVERY)
    run(setup, policy_of("standard", options), watch=watch, snapshots=snapshots, keep=keep)
    cases = [case for at, text in states for case in _cases(at, text, setup.jobs, starts, last)]
    inside = [low <= true <= high for true, low, _, high, _ in cases]
    ours = median(abs(true - middle) for true, _, middle, _, _ in cases)
    mean = median(abs(true - guess) for true, *_, guess in cases)
    return {
        "cases": len(cases),
        "states": len(states),
        "coverage": fmean(inside),
        "width_h": fmean(high - low for _, low, _, high, _ in cases) / 3_600,
        "error_s": ours,
        "mean_wait_error_s": mean,
    }


def _cases(
    at: int, text: list[str], jobs: list[Job], starts: Mapping[str, list[int]], last: int
) -> Iterator[tuple[float, float, float, float, float]]:
    """(true start, p10, p50, p90, start by the mean wait), seconds after the state."""
    snapshot = parse(text)
    if not snapshot.pending():
        return
    # The trace ends; that nobody comes afterwards is no secret.
    until = last / SECOND + 1
    found = forecast(snapshot, draws=DRAWS, jobs=PROCESSES, horizon_s=HORIZON_S, arrivals_until_s=until)
    waits = _last_waits(at, jobs, starts)
    for each in found.jobs:
        true = next(start for start in starts[each.job] if start > at)
        if (true - at) / SECOND + each.waited_s > WAIT:
            guess = waits.get(each.gpus) or [wait for some in waits.values() for wait in some]
            yield (true - at) / SECOND, *_seconds(each), max(0.0, fmean(guess) - each.waited_s)


def _seconds(job: JobForecast) -> tuple[float, float, float]:
    p10, p50, p90 = (HORIZON_S if at is None else at for at in (job.start.p10, job.start.p50, job.start.p90))
    return p10, p50, p90


def _last_waits(at: int, jobs: list[Job], starts: Mapping[str, list[int]]) -> dict[float, deque[float]]:
    """Waits of the last 100 jobs that started, by size, seconds."""
    began = sorted((starts[job.id][0], row) for row, job in enumerate(jobs) if job.id in starts)
    waits: dict[float, deque[float]] = {}
    for start, row in began:
        if start <= at:
            job = jobs[row]
            kept = waits.setdefault(job.request.gpus / 1_000, deque(maxlen=100))
            kept.append((start - job.submit) / SECOND)
    return waits


def busy(folder: str) -> dict[str, object]:
    """A large cluster that has run for a day when thousands of jobs come within a quarter of an hour."""
    setup, found = _busy_setup(), {}

    class Written(Exception):  # noqa: N818 - it is no error
        pass

    def keep(at: int, simulation: Simulation, ledger: Ledger) -> None:
        state = simulation.engine.state
        waiting = len(state.jobs) - len(state.running)
        if waiting >= 1_900:
            path = Path(folder, "busy.jsonl")
            write_snapshot(path, at, simulation, ledger)
            found.update(state=str(path), waiting=waiting, running=len(state.running))
            raise Written

    snapshots = range(86_400 * SECOND, 100_000 * SECOND, 100 * SECOND)
    try:
        run(setup, policy_of("standard", setup.options), snapshots=snapshots, keep=keep)
    except Written:
        return found
    raise RuntimeError("so many never waited")


def _busy_setup(nodes: int = 1_000, queues: int = 20, jobs: int = 32_000) -> Setup:
    rng = random.Random(0)
    share = nodes * 8 * 1_000 // queues
    tree = QueueTree(
        tuple(
            Queue(f"q{i}", guaranteed=rng.choice((share // 2, share)), weight=1 + i % 3)
            for i in range(queues)
        )
    )
    found: list[Job] = []
    durations: list[int] = []
    at = 0.0
    for number in range(jobs):
        at += rng.expovariate(4.0 if 27_500 <= number <= 31_000 else 0.31)
        gpus = rng.choice(SIZES)
        durations.append(round(min(rng.lognormvariate(8.5, 1.5), 7 * 86_400) * SECOND))
        found.append(
            Job(
                f"j{number}",
                number,
                round(at * SECOND),
                Request(gpus * 1_000),
                tenant=f"q{int(rng.random() ** 2 * queues)}",
                user=f"u{rng.randrange(50)}",
                priority=rng.choice((0, 0, 0, 1)),
            )
        )
    cluster = Cluster(tuple(Node(f"n{i}", 8) for i in range(nodes)), queues=tree)
    return Setup(found, durations, cluster, "standard", Options())


if __name__ == "__main__":
    what, argument = sys.argv[1:]
    print(json.dumps(calibration(argument) if what == "calibration" else busy(argument)))
