"""What a case can ask for: features of the engine, and features that policies claim.

A case that needs a feature which isn't there is *not yet* run, and counted apart. Most needs
follow from the keys that a case uses; `needs:` adds what keys don't tell.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from trainmaster.core.engine import Engine
from trainmaster.model.reason import Reason
from trainmaster.policies.base import ROUND, Policy
from trainmaster.policies.parts.backfill import Blocking, Conservative, Easy
from trainmaster.policies.parts.ordering import PriorityClasses
from trainmaster.policies.registry import BUILT_IN, create

BY_POLICY: Final = {
    "backfill": "a job may start although one before it can't",
    "fair-share": "the queue with the smallest share is next",
    "gpu-choice": "a job gets the type of GPU on which it gains most",
    "hold": "idle guaranteed GPUs may be kept for the first job of a queue",
    "migration": "running jobs may be moved to other nodes",
    "preemption": "running jobs give way",
    "priorities": "more urgent jobs go first",
    "quota": "queues have guarantees and limits, borrow, and reclaim",
    "reservation": "a job that can't start is promised GPUs that later jobs don't delay",
    "rounds": "decides only at multiples of a time",
}
"""Features that a policy has or lacks: what its parts show, and what its class declares as
`features = ("quota", …)`. One that no policy has is still to come."""

BY_ENGINE: Final = (
    "cancel",
    "costs",
    "drain",
    "earliest-start",
    "failures",
    "fractions",
    "gpu-types",
    "labels",
    "min-run",
    "pods",
    "reasons",
    "snapshot",
    "speeds",
    "topology",
)
"""Features of the engine and the virtual cluster that are there. A test pins them."""

PLANNED: Final = {
    "auditor": "a watch over GPUs that are reserved and not used",
    "deadlines": "jobs that must end by an instant",
    "dependencies": "jobs that wait for others to end",
    "elastic": "gangs that shrink and grow",
    "grace": "time that a job is given to stop",
    "rejoin": "gangs that keep their healthy nodes",
    "retries": "jobs that fail and are tried again",
}
"""Features of the engine that cases name and that are still to come."""

VARIANTS: Final = ("fifo(backfill=greedy)", "fifo(backfill=easy)", "fifo(backfill=conservative)")
"""Knobs that make another policy of one."""

EVERY: Final = ("fifo", *VARIANTS, *(name for name in BUILT_IN if name != "fifo"))
"""The policies that a case runs over when it names none."""


def reasons(engine: Engine) -> dict[str, Reason]:
    """Why each pending job waits. The one place that knows where reasons come from."""
    return engine.explain_all()


def known() -> list[str]:
    """All features, there or planned."""
    return sorted({*BY_ENGINE, *BY_POLICY, *PLANNED})


@cache
def existing() -> tuple[str, ...]:
    """All features that are there: of the engine, and those that some policy of `EVERY` claims."""
    claimed = set().union(*(claims(create(name)) for name in EVERY))
    return tuple(sorted({*BY_ENGINE, *(feature for feature in BY_POLICY if feature in claimed)}))


def missing(needs: Iterable[str]) -> list[str]:
    """Those of the features that aren't there."""
    return sorted(set(needs) - set(existing()))


def claims(policy: Policy) -> set[str]:
    """Features of `BY_POLICY` that a policy has: by its parts, and those that its class names.

    >>> sorted(claims(create("priority")))
    ['backfill', 'preemption', 'priorities', 'rounds']
    >>> sorted(claims(create("fifo(backfill=easy)")))
    ['backfill', 'reservation']
    """
    found = set(policy.features)
    if not isinstance(policy.walk, Blocking):
        found.add("backfill")
    if isinstance(policy.walk, Easy | Conservative):
        found.add("reservation")
    if policy.ordering.preemptive:
        found.add("preemption")
    if isinstance(policy.ordering, PriorityClasses):
        found.add("priorities")
    if policy.by_tenant:
        found.add("fair-share")
    if ROUND in policy.all_knobs():
        found.add("rounds")
    return found
