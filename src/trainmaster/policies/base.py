"""The base class of policies: a policy names its parts, and `plan` walks the queue.

A policy is written in one file::

    class Smallest(Policy):
        \"\"\"Smallest gang first.\"\"\"

        name = "smallest"

        def compose(self) -> None:
            self.ordering = SmallestGang()

Parts: `ordering` (who is next, who gives way), `walk` (what happens behind a job that
can't start, and whether running jobs give way), `placement` (which GPUs), `sharing`
(whose turn it is among tenants; wraps the ordering). A planner that thinks in other
terms overrides `plan(view)` and takes its steps on the view itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from trainmaster.model.ports import ClusterView, JobView, Ordering
from trainmaster.model.reason import Glance, Proposal, Reason
from trainmaster.model.units import LONGEST_S, to_ns
from trainmaster.policies.knobs import Knob, Value, settings
from trainmaster.policies.parts.backfill import Greedy, Walk
from trainmaster.policies.parts.greedy import GreedyWalk
from trainmaster.policies.parts.ordering import Order
from trainmaster.policies.parts.placement import PLACEMENTS, Placement
from trainmaster.policies.parts.preemption import Evict
from trainmaster.policies.parts.proposals import proposals
from trainmaster.policies.parts.reason_kinds import not_yet, unsaid
from trainmaster.policies.parts.reasons import Inquiry

MIN_RUN = Knob(
    "min_run_s",
    60.0,
    "a job that has just started may not be stopped for this long, seconds "
    "(default 0 under placement pool with zero costs)",
    low=0,
    high=LONGEST_S,
)
ROUND = Knob(
    "round_s", 0.0, "decide only at multiples of this, seconds; 0 = at every event", low=0, high=LONGEST_S
)


class Policy:
    """A scheduling policy composed of parts.

    Args:
        placement: pool, pack or spread.
        relax_s: waiting time after which a job accepts any nodes, seconds; None = never.
        title: name in results; by default the policy's own.
        knobs: by name; the others keep their defaults.

    Raises:
        InputError: an unknown knob or a bad value.

    >>> from trainmaster.policies.fifo import Fifo
    >>> Fifo(backfill="easy").settings
    {'backfill': 'easy', 'depth': 100}
    """

    name: str = ""
    source: ClassVar[str] = ""
    """The paper or system it comes from."""
    limits: ClassVar[str] = ""
    """What it doesn't do, or where it departs from its source."""
    features: ClassVar[tuple[str, ...]] = ()
    """What it claims beyond what its parts show, for the cases that it is tried on: "quota", …"""
    knobs: ClassVar[tuple[Knob, ...]] = ()
    preemptive: ClassVar[bool] = False
    """Whether running jobs may give way; the ordering says so as well."""

    def __init__(
        self,
        *,
        placement: str = "pack",
        relax_s: float | None = None,
        title: str | None = None,
        defaults: Mapping[str, Value] | None = None,
        **knobs: object,
    ) -> None:
        self.title = title or self.name
        self.settings = settings(self.all_knobs(), {**(defaults or {}), **knobs}, self.name)
        self.relax = None if relax_s is None else to_ns(relax_s)
        self.by_tenant = False
        self.min_run = to_ns(float(self.settings.get("min_run_s", 0.0)))
        self.round = to_ns(float(self.settings.get("round_s", 0.0)))
        self.placement: Placement = PLACEMENTS[placement]()
        self.ordering: Ordering = Order()
        self.walk: Walk = Greedy()
        if self.preemptive:
            self.walk = GreedyWalk() if placement == "pool" else Evict()
        self.compose()

    def compose(self) -> None:
        """Name the parts. Called once, with `settings` and the default parts in place."""

    @classmethod
    def all_knobs(cls) -> tuple[Knob, ...]:
        """The policy's own knobs, and those that all policies of its kind have."""
        return (*cls.knobs, MIN_RUN, ROUND) if cls.preemptive else cls.knobs

    def number(self, name: str) -> float:
        """A knob as a number."""
        return float(self.settings[name])

    def plan(self, view: ClusterView) -> None:
        """Decide, by steps on `view`."""
        self.walk.plan(view, self.ordering, self.placement)

    def explain(self, view: Glance, job: JobView) -> Reason:
        """Why a job waits, after a decision."""
        return self.explain_all(view, [job])[0]

    def explain_all(self, view: Glance, jobs: Sequence[JobView]) -> list[Reason]:
        """Why each of the jobs waits; what they have in common is worked out once."""
        inquiry = self._inquiry(view)
        return [self._explain(inquiry, job) for job in jobs]

    def _inquiry(self, view: Glance) -> Inquiry:
        return Inquiry(view, self.ordering, self.placement, relax=self.relax is not None)

    def _explain(self, inquiry: Inquiry, job: JobView) -> Reason:
        reason = not_yet(inquiry, job) or inquiry.never(job)
        if reason is not None:
            return reason
        # Who plans without the walk is not asked through it.
        explain = getattr(self.walk, "explain", None) if type(self).plan is Policy.plan else None
        found: Reason | None = inquiry.lacks(job) if explain is None else explain(inquiry, job)
        return found or unsaid(inquiry, job, self.name, self.round)

    def proposals(self, view: Glance, job: JobView, reason: Reason) -> list[Proposal]:
        """Other ways for the job to ask that might help; each is still to be tried."""
        return proposals(self._inquiry(view), job, reason)

    # -- saving and restoring -------------------------------------------------------------------

    def memory(self) -> dict[str, Any]:
        """What the next decision depends on and the view doesn't tell, as plain data for `recall`.

        Asked of the ordering and the walk, if they have such a method. What only saves time, such
        as who found no room last time, needn't be in it. A policy that keeps more of its own adds
        it here.
        """
        parts = {"ordering": self.ordering, "walk": self.walk}
        found = {name: part.memory() for name, part in parts.items() if hasattr(part, "memory")}
        return {name: memory for name, memory in found.items() if memory}

    def recall(self, memory: Mapping[str, Any], view: ClusterView, jobs: Mapping[str, JobView]) -> None:
        """Remember what another policy of the kind did.

        Args:
            memory: from `memory`.
            view: of the restored state; no step may be taken on it.
            jobs: all jobs in the system by id.
        """
        for name, part in (("ordering", self.ordering), ("walk", self.walk)):
            if hasattr(part, "recall"):
                part.recall(memory.get(name, {}), view, jobs)
