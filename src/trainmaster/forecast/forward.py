"""One run forward from a snapshot, with durations and arrivals of its own."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from trainmaster.core.engine import Engine
from trainmaster.core.state import JobState
from trainmaster.forecast.arrivals import Arrivals
from trainmaster.forecast.durations import Draws, Durations
from trainmaster.model.action import Start
from trainmaster.model.event import Finished
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Phase
from trainmaster.model.units import SECOND
from trainmaster.sim.run import Simulation
from trainmaster.sim.snapshot import Snapshot

MANY: Final = 1_000
ROUND: Final = 60 * SECOND
"""A run asks the policy in rounds only, of so long for so many jobs in the system: next to nothing beside
the hours that so many jobs take, and a fraction of the decisions."""

PATIENCE: Final = 6 * 3_600 * SECOND
"""Of so many waiting jobs, a run gives up on the last twentieth when none of them has started for as
long again as it took up to the last start, and so much more: in a few runs somebody waits for ever."""

PROBE: Final = "probe of queue "
"""Names of jobs that are submitted to see how long they would wait begin so."""


@dataclass
class Run:
    """What happened in one run.

    Attributes:
        starts: when jobs of interest were asked to start, ns, by id.
        ends: when they ended, or would end if left alone from when the run stopped.
        instants: how many batches of events there were.
    """

    starts: dict[str, int] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    instants: int = 0


class Forward:
    """Runs a snapshot forward.

    Args:
        snapshot: where to begin.
        seed: of all draws.
        horizon: a run stops so long after the snapshot at the latest, ns.
        arrivals_until: no job is submitted from this instant on, ns; None = they go on.
    """

    def __init__(
        self, snapshot: Snapshot, *, seed: int = 0, horizon: int, arrivals_until: int | None = None
    ) -> None:
        self.snapshot = replace(snapshot, options=replace(snapshot.options, validate=False))
        self.seed = seed
        self.end = snapshot.now + horizon
        self.last_arrival = self.end if arrivals_until is None else min(self.end, arrivals_until)
        now = snapshot.now
        base = snapshot.restored()
        self.engine = base.engine
        _teach(base.engine, snapshot)
        self._done = {name: job.done(now) for name, job in base.engine.state.jobs.items()}
        self.durations = Durations(base.engine.predictor, snapshot.past, self._done, now)
        self._first = 1 + max((job.sequence for job in snapshot.jobs.values()), default=-1)
        self._first = max(self._first, snapshot.arrived)

    @property
    def _processes(self) -> list[dict[str, Any]]:
        return self.snapshot.executor["processes"]

    def waiting(self) -> list[JobState]:
        """Jobs that wait for GPUs, in order of submission."""
        waiting = (Phase.PENDING, Phase.NOMINATED)
        return [job for job in self.engine.state.jobs.values() if job.phase in waiting]

    def run(self, number: int, names: Iterable[str], probes: Sequence[Job] = ()) -> Run:
        """One run, until all jobs of these names have started.

        Args:
            number: of the run; with the seed it settles every draw.
            names: of waiting jobs.
            probes: jobs submitted right now, which end a second after they start; they are
                waited for too.
        """
        rng = random.Random(f"{self.seed} {number}")
        simulation, arrivals = self._prepared(rng, probes)
        left = {*names, *(probe.id for probe in probes)}
        found = Run()
        tracked = frozenset(left)
        few = len(left) // 20 if len(left) >= MANY else 0
        give_up = self.end
        clock = simulation.clock
        while left:
            now = clock.next_instant()
            while arrivals.open and (now is None or now >= arrivals.until):
                arrivals.extend()
                now = clock.next_instant()
            if now is None or now > (give_up if len(left) <= few else self.end):
                break
            found.instants += 1
            batch, actions = simulation.step(now)
            for event in batch:
                if type(event) is Finished and event.job_id in tracked:
                    found.ends[event.job_id] = now
            for action in actions:
                if type(action) is Start and action.job_id in left:
                    left.discard(action.job_id)
                    found.starts[action.job_id] = now
                    give_up = min(self.end, 2 * now - self.snapshot.now + PATIENCE)
        self._let_end(simulation, found)
        return found

    def _prepared(self, rng: random.Random, probes: Sequence[Job]) -> tuple[Simulation, Arrivals]:
        snapshot = self.snapshot
        draws = Draws(self.durations, rng)
        works = {name: draws.draw(job, self._done[name]) for name, job in snapshot.jobs.items()}
        known = {snapshot.jobs[name].sequence: work for name, work in works.items()}

        def duration(job: Job) -> int:
            return draws.draw(job, self._done.get(job.id, 0))

        first = self._first + len(probes)
        arrivals = Arrivals(snapshot.past, snapshot.now, self.last_arrival, first, duration, rng)
        arrivals.durations.update(known)
        for number, probe in enumerate(probes):
            moved = replace(probe, sequence=self._first + number, submit=snapshot.now)
            arrivals.jobs.append(moved)
            arrivals.durations[moved.sequence] = SECOND
        executor = {
            "processes": [{**each, "work": works[each["job"]]} for each in self._processes],
            "events": snapshot.executor["events"],
        }
        simulation = snapshot.restored(arrivals.durations, arrivals.jobs, executor=executor)
        policy = simulation.engine.policy
        if not policy.round:
            policy.round = len(snapshot.jobs) // MANY * ROUND
        simulation.engine.predictor.recall(self.engine.predictor.memory())  # type: ignore[attr-defined]
        return simulation, arrivals

    @staticmethod
    def _let_end(simulation: Simulation, found: Run) -> None:
        """Work out when jobs end that started and have not ended yet."""
        engine = simulation.engine
        for name in found.starts.keys() - found.ends.keys():
            found.ends[name] = simulation.executor.expected_end(name, engine.now)


def _teach(engine: Engine, snapshot: Snapshot) -> None:
    """Let a predictor that nobody asked so far learn from the jobs of the past week."""
    if engine.policy.ordering.uses_estimates:
        return
    finished = [(each.ended, each.job, each.ran) for each in snapshot.past if each.ended is not None]
    for ended, job, ran in sorted(finished, key=lambda each: (each[0], each[1].sequence)):
        assert ran is not None and ended is not None
        engine.predictor.observe(job, ran, ended)


def probe_of(queue: str, gpus: int, now: int) -> Job:
    """A new job of a queue, to be submitted at `now`."""
    return Job(f"{PROBE}{queue}", 0, now, Request(gpus), tenant=queue)
