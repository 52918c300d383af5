"""What must hold of every decision, whatever the case: evictions and their reasons.

I3 an eviction is committed only together with the placement that it enables, on the freed nodes;
I4 without any one victim that placement would not be possible;
I5 nobody is evicted twice unless something happened in between;
I6 a victim that comes back, with no other news, leads to no further eviction;
I9 every pending job has a reason that names what holds it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trainmaster.core.engine import Engine
from trainmaster.core.state import JobState
from trainmaster.model.action import Action, Stop
from trainmaster.model.allocation import Allocation
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Lost,
    NodeDown,
    NodeUp,
    Stopped,
    Submitted,
    Timer,
)
from trainmaster.model.ports import ClusterView, Phase
from trainmaster.model.reason import Level
from trainmaster.model.units import GPU, to_seconds
from trainmaster.policies.base import Policy
from trainmaster.policies.parts.greedy import GreedyWalk
from trainmaster.testing.scenario_account import Account, InvariantError
from trainmaster.testing.scenario_features import reasons

NEWS: Final = (Submitted, Finished, Failed, Lost, NodeDown, NodeUp, Cancelled)
"""What nobody asked for: after it, decisions may differ."""

PROMISED: Final = (Phase.NOMINATED, Phase.STARTING, Phase.RUNNING)


class Decisions:
    """Watches the decisions of an engine; call `begin` before each batch and `check` after it."""

    def __init__(self, engine: Engine, account: Account) -> None:
        self._engine = engine
        self._account = account
        # A walk over all jobs of a pool doesn't weigh those that are stopping; they can displace
        # others afterwards. Time slices and rounds turn on timers, which are news.
        self._settles = not isinstance(getattr(engine.policy, "walk", None), GreedyWalk)
        self._now = 0
        self._quiet = False
        self._evicted_since_news: set[str] = set()
        self._before: set[str] = set()
        self._plan = engine.policy.plan
        engine.policy.plan = self._watched  # type: ignore[method-assign]

    def begin(self, now: int, batch: Sequence[Event]) -> None:
        """A batch is about to be handled."""
        self._now = now
        if any(isinstance(e, NEWS) or (isinstance(e, Timer) and e.job_id is not None) for e in batch):
            self._evicted_since_news.clear()
        self._quiet = bool(batch) and all(isinstance(e, Stopped | CheckpointWritten) for e in batch)
        self._before = self._promised()

    def check(self, actions: Sequence[Action]) -> None:
        """The batch was handled, with these actions, none of which is carried out yet.

        Raises:
            InvariantError: names the invariant, the instant and the job.
        """
        victims = [action.job_id for action in actions if isinstance(action, Stop)]
        if victims:
            self._check_rest(victims)
            # A gang of 1.5 GPUs may free two whole ones, which the choice of victims doesn't know.
            held = self._account.held
            if all(held[name].milli <= GPU or held[name].milli % GPU == 0 for name in victims):
                self._check_use({name: held[name] for name in victims})

    def settled(self) -> None:
        """All of an instant has happened.

        Raises:
            InvariantError: a pending job has no reason.
        """
        waiting = self._account.waiting()
        known = reasons(self._engine) if waiting else {}
        for name in waiting:
            if name not in known or not known[name].sentence.strip():
                raise self._broken(f"I9: {name} waits without a reason")
            # A policy that plans in a way of its own may not say why.
            if known[name].level is Level.POLICY and type(self._engine.policy).plan is Policy.plan:
                raise self._broken(f"I9: {name} waits although nothing holds it back")

    def _watched(self, view: ClusterView) -> None:
        self._before = self._promised()
        self._plan(view)

    def _promised(self) -> set[str]:
        return {name for name, job in self._engine.state.jobs.items() if job.phase in PROMISED}

    def _broken(self, what: str) -> InvariantError:
        return InvariantError(f"{what} (at {to_seconds(self._now):g} s)")

    def _check_rest(self, victims: Sequence[str]) -> None:
        for name in victims:
            if name in self._evicted_since_news and self._settles:
                raise self._broken(f"I5: {name} is evicted again although nothing happened in between")
            self._evicted_since_news.add(name)
        if self._quiet and self._settles:
            raise self._broken(f"I6: {', '.join(victims)} evicted because a victim came back")

    def _check_use(self, victims: dict[str, Allocation]) -> None:
        jobs = self._engine.state.jobs
        winners = [jobs[name] for name in jobs if name in self._promised() - self._before]
        if not winners:
            raise self._broken(f"I3: {', '.join(victims)} evicted, and nothing was placed")
        if self._engine.state.cluster.pooled:
            self._check_pool(victims, winners)
            return
        for name, allocation in victims.items():
            if not any(_overlap(allocation, _allocation(winner)) for winner in winners):
                raise self._broken(f"I3: {name} is evicted, and nobody takes its GPUs")
        if len(winners) == 1:  # of several, one may have found what another's victim left over
            for name, allocation in victims.items():
                if self._superfluous(allocation, winners[0]):
                    who = winners[0].job.id
                    raise self._broken(f"I4: {who} would have found room without evicting {name}")

    def _check_pool(self, victims: dict[str, Allocation], winners: Sequence[JobState]) -> None:
        taken = sum(_allocation(winner).milli for winner in winners)
        given = sum(allocation.milli for allocation in victims.values())
        idle = self._engine.state.capacity.free_milli + taken - given
        for name, allocation in victims.items():
            if taken <= idle + given - allocation.milli:
                raise self._broken(f"I4: there would have been room without evicting {name}")

    def _superfluous(self, victim: Allocation, winner: JobState) -> bool:
        """Whether the winner finds room while the victim stays."""
        policy = self._engine.policy
        if not isinstance(policy, Policy):
            return False
        trial = self._engine.state.capacity.copy()
        trial.give(_allocation(winner))
        if not trial.fits(victim):
            return False  # on a node that is down nothing can be taken back
        trial.take(victim)
        relaxed = winner.members is not None and winner.members.relaxed
        return policy.placement.find(trial, winner.job.request, relaxed=relaxed) is not None


def _allocation(job: JobState) -> Allocation:
    assert job.allocation is not None
    return job.allocation


def _overlap(one: Allocation, other: Allocation) -> bool:
    return any(a.node == b.node and a.devices & b.devices for a in one.shares for b in other.shares)
