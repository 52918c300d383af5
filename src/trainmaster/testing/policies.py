"""The contract of a policy, as tests that you inherit.

::

    from trainmaster.testing import PolicyContract

    class TestMyPolicy(PolicyContract):
        policy = MyPolicy

Run it with pytest. Every schedule is made with the engine's invariants checked at each
instant, and is audited once more from its events alone (`trainmaster.testing.schedules`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.job import Deadline, Job, Workload
from trainmaster.model.units import SECOND
from trainmaster.policies.base import MIN_RUN, Policy
from trainmaster.policies.checks import refuse_faults
from trainmaster.policies.knobs import Knob, Value
from trainmaster.sim.options import Costs
from trainmaster.testing.schedules import (
    FREE,
    Case,
    PolicyFactory,
    Schedule,
    SealedDurations,
    no_hidden_inputs,
    play,
)

__all__ = ["PolicyContract"]

COSTS = Costs(checkpoint_s=6, restore_s=24, start_s=10)
UNEVEN = Cluster((Node("small", 2), Node("large", 8), Node("middle", 4), Node("tiny", 1)))
TYPED = Cluster(tuple(Node(f"{kind}-{index}", 4, kind) for index in range(2) for kind in ("K80", "V100")))

YEAR_S = 365.0 * 86_400
FEW_DECISIONS = 1_000


class PolicyContract:
    """Inherit, set `policy`, and pytest runs the contract.

    Args:
        policy: a `Policy` class; or what makes one from keyword arguments (placement, relax_s,
            defaults, knobs), such as `functools.partial(Fifo, backfill="easy")`.
    """

    policy: ClassVar[Any]

    # -- what it says of itself -------------------------------------------------------------

    def test_says_what_it_is(self) -> None:
        made = self.make()
        assert isinstance(made, Policy), "derive the class from trainmaster.Policy"
        assert made.name and made.name == made.name.lower(), "`name` is one lower-case word"
        assert not set(made.name) & set(" ,()=."), "`name` must fit into a specification"
        assert (type(made).__doc__ or "").strip(), "the class has no docstring; its first line is shown"
        assert made.source.strip(), "`source` says where the policy comes from"

    def test_parts_are_complete(self) -> None:
        made = self.make()
        assert made.min_run >= 0 and made.round >= 0, "times are ns, at least 0"
        for name in ("pending_key", "challenge", "running_key", "next_change", "finished", "refresh"):
            assert callable(getattr(made.ordering, name, None)), f"the ordering has no method {name}"
        if made.ordering.preemptive:
            assert made.preemptive, "the ordering preempts, so the policy must say `preemptive = True`"

    def test_knobs_are_described(self) -> None:
        knobs = self.make().all_knobs()
        assert len({knob.name for knob in knobs}) == len(knobs), "two knobs of one name"
        for knob in knobs:
            assert knob.name.isidentifier() and knob.name == knob.name.lower(), f"odd knob name {knob.name!r}"
            assert knob.help.strip() and "\n" not in knob.help, f"knob {knob.name}: help is one line"
            assert knob.range, f"knob {knob.name} has no range"
            if _is_number(knob):
                bounded = math.isfinite(knob.low) or math.isfinite(knob.high)
                assert bounded, f"knob {knob.name}: a number needs a lowest or a highest value"

    def test_knobs_accept_their_defaults_and_ends(self) -> None:
        for knob in self.make().all_knobs():
            for value in (knob.default, *_ends(knob)):
                parsed = knob.parse(str(value))
                assert parsed == value and type(parsed) is type(knob.default), f"knob {knob.name}: {value!r}"

    def test_works_at_the_ends_of_its_knobs(self) -> None:
        made = self.make()
        for knob in made.all_knobs():
            for value in _ends(knob):
                play(type(made), Case.busy(3, jobs=14), costs=COSTS, knobs={knob.name: value})

    # -- every job ends -----------------------------------------------------------------------

    def test_finishes_in_a_pool(self) -> None:
        self.play_all("pool", FREE)

    def test_finishes_in_a_pool_where_stopping_costs(self) -> None:
        self.play_all("pool", COSTS)

    def test_finishes_packed(self) -> None:
        self.play_all("pack", FREE)

    def test_finishes_packed_where_stopping_costs(self) -> None:
        self.play_all("pack", COSTS)

    def test_finishes_spread(self) -> None:
        self.play_all("spread", FREE)

    def test_finishes_spread_where_stopping_costs(self) -> None:
        self.play_all("spread", COSTS)

    def test_one_job(self) -> None:
        for placement in ("pool", "pack", "spread"):
            schedule = self.play(Case.of(rows=[("only", 5, 1_000, 3)]), placement=placement, costs=COSTS)
            assert not schedule.stops, "nobody else wants its GPUs"

    def test_one_job_that_needs_every_gpu(self) -> None:
        for placement in ("pool", "pack", "spread"):
            self.play(Case.of(rows=[("only", 0, 100, 12)], nodes=3, gpus_per_node=4), placement=placement)

    def test_the_smallest_cluster(self) -> None:
        rows = [(f"job-{row}", float(row), 30.0, 1.0) for row in range(5)]
        self.play(Case.of(rows=rows, gpus_per_node=1), costs=COSTS)

    def test_a_burst_of_equal_jobs(self) -> None:
        rows = [(f"job-{row}", 10.0, 600.0, 2.0) for row in range(24)]
        for placement in ("pool", "pack"):
            self.play(Case.of(rows=rows, nodes=2, gpus_per_node=4), placement=placement, costs=COSTS)

    def test_a_gang_of_the_whole_cluster_among_small_jobs(self) -> None:
        small = [(f"small-{row}", 10.0 * row, 45.0, 1.0) for row in range(40)]
        rows = sorted([*small, ("whole", 15.0, 200.0, 8.0)], key=lambda row: row[1])
        for placement in ("pool", "pack", "spread"):
            self.play(Case.of(rows=rows, nodes=2, gpus_per_node=4), placement=placement, costs=COSTS)

    def test_a_long_job_among_short_ones(self) -> None:
        short = [(f"short-{row}", 5.0 * row, 20.0, 4.0) for row in range(60)]
        rows = sorted([*short, ("long", 1.0, 900.0, 8.0)], key=lambda row: row[1])
        self.play(Case.of(rows=rows), costs=COSTS)

    def test_gangs_larger_than_a_node(self) -> None:
        rows = [(f"gang-{row}", 20.0 * row, 100.0 + row, 5.0 + row % 8) for row in range(12)]
        for placement in ("pack", "spread"):
            self.play(Case.of(rows=rows, nodes=3, gpus_per_node=4), placement=placement, costs=COSTS)

    def test_fractions_of_a_gpu(self) -> None:
        sizes = (0.25, 0.5, 0.18, 0.75, 1.0, 0.5, 1.5, 2.25)
        rows = [(f"job-{row}", 4.0 * row, 60.0 + row, sizes[row % len(sizes)]) for row in range(32)]
        for placement in ("pool", "pack", "spread"):
            self.play(Case.of(rows=rows, gpus_per_node=2, nodes=2), placement=placement, costs=COSTS)

    def test_gpu_types(self) -> None:
        types = ((), ("K80",), ("V100",), ("K80", "V100"))
        case = Case.busy(4, cluster=TYPED, most=8).changed(
            lambda job: replace(job, request=replace(job.request, gpu_types=types[job.sequence % len(types)]))
        )
        for placement in ("pack", "spread"):
            self.play(case, placement=placement, costs=COSTS)

    def test_uneven_nodes(self) -> None:
        for placement in ("pool", "pack", "spread"):
            self.play(Case.busy(5, cluster=UNEVEN, most=8), placement=placement, costs=COSTS)

    def test_gangs_that_accept_any_nodes_after_a_while(self) -> None:
        fillers = [("left", 0.0, 1_000.0, 3.0), ("right", 0.0, 1_000.0, 3.0)]
        rows = [*fillers, ("pair", 10.0, 60.0, 2.0), ("four", 20.0, 60.0, 4.0)]
        for relax_s in (0.0, 60.0):
            self.play(Case.of(rows=rows, nodes=2, gpus_per_node=4, preemptible=False), relax_s=relax_s)
            self.play(Case.busy(6), relax_s=relax_s, costs=COSTS)

    def test_jobs_of_a_nanosecond_and_of_years(self) -> None:
        rows = [(f"job-{row}", 0.1 * row, (1e-9, 0.3, YEAR_S, 7.0)[row % 4], 2.0) for row in range(12)]
        knobs = dict.fromkeys(self.knob_names() & {"quantum_s"}, 86400.0 * 30)
        self.play(Case.of(rows=rows, nodes=2, gpus_per_node=4), knobs=knobs)

    def test_everything_at_one_instant(self) -> None:
        case = Case.busy(7).changed(lambda job: replace(job, submit=0))
        self.play(case, costs=COSTS)
        self.play(case, placement="pool")

    def test_jobs_that_say_all_that_can_be_said(self) -> None:
        def with_everything(job: Job) -> Job:
            return replace(
                job,
                declared=600 * SECOND,
                workload=Workload("resnet50", 256, 1_000.0),
                deadlines=(Deadline(job.submit + 900 * SECOND, 2.0), Deadline(job.submit + 9_000 * SECOND)),
                job_class="strict",
            )

        self.play(Case.busy(8).changed(with_everything), predictor="declared", costs=COSTS)

    def test_jobs_that_say_nothing(self) -> None:
        case = Case.busy(8).changed(lambda job: replace(job, tenant="", user="", priority=0, declared=None))
        self.play(case, costs=COSTS)

    def test_priorities_of_any_size(self) -> None:
        sizes = (-1_000_000, -1, 0, 1, 1_000_000)
        case = Case.busy(9).changed(lambda job: replace(job, priority=sizes[job.sequence % len(sizes)]))
        self.play(case, costs=COSTS)

    def test_tenants_of_unequal_weight(self) -> None:
        self.play(Case.busy(10), costs=COSTS, weights={"red": 4.0, "green": 0.5})

    # -- nodes that fail ---------------------------------------------------------------------

    def test_a_node_fails_and_returns(self) -> None:
        failures = ((300.0, 1, "down"), (2_000.0, 1, "up"))
        for placement in ("pack", "spread"):
            for costs in (FREE, COSTS):
                self.play(Case.busy(11), placement=placement, costs=costs, failures=failures)

    def test_all_nodes_fail_and_return(self) -> None:
        down = [(500.0, node, "down") for node in range(4)]
        self.play(Case.busy(12), costs=COSTS, failures=[*down, *((900.0, node, "up") for node in range(4))])

    def test_a_node_fails_again_and_again(self) -> None:
        failures = [(200.0 * step, step % 2, ("down", "up")[step // 2 % 2]) for step in range(2, 30)]
        self.play(Case.busy(13), costs=COSTS, failures=[*failures, (1e5, 0, "up"), (1e5, 1, "up")])

    def test_the_only_large_node_fails_and_returns(self) -> None:
        failures = ((100.0, 1, "down"), (3_000.0, 1, "up"))
        self.play(Case.busy(14, cluster=UNEVEN, most=8), costs=COSTS, failures=failures)

    # -- who is stopped ------------------------------------------------------------------------

    def test_nobody_is_stopped_while_there_is_room(self) -> None:
        rows = [(f"job-{row}", 30.0 * row, 100.0 + 10 * row, 2.0) for row in range(8)]
        for placement in ("pool", "pack"):
            schedule = self.play(Case.of(rows=rows, nodes=2), placement=placement, costs=COSTS)
            assert not schedule.stops, f"there is room for all, yet {schedule.stops} were stopped"

    def test_what_is_not_preemptible_is_never_stopped(self) -> None:
        case = Case.busy(15).changed(
            lambda job: replace(job, request=replace(job.request, preemptible=False))
        )
        for placement in ("pool", "pack", "spread"):
            assert not self.play(case, placement=placement, costs=COSTS).stops

    def test_a_policy_that_is_not_preemptive_stops_nobody(self) -> None:
        schedule = self.play(Case.busy(16), costs=COSTS)
        assert self.make().preemptive or not schedule.stops, "say `preemptive = True`"

    def test_minimum_run_time_is_respected(self) -> None:
        """The audit looks at the time between each start and stop."""
        if MIN_RUN.name not in self.knob_names():
            return
        for minimum in (1_200.0, 45.0, 0.0):
            for placement in ("pool", "pack"):
                knobs = {MIN_RUN.name: minimum}
                schedule = self.play(Case.busy(17), placement=placement, costs=COSTS, knobs=knobs)
                assert schedule.policy.min_run == minimum * SECOND, "compose() must leave min_run alone"

    # -- what it decides from ------------------------------------------------------------------

    def test_the_same_input_gives_the_same_schedule(self) -> None:
        for predictor in ("history", "noisy:0.5"):
            first, second = (
                self.play(Case.busy(18), costs=COSTS, predictor=predictor, seed=7).text() for _ in range(2)
            )
            assert first == second, "two runs differ: state is kept outside the policy, or order is random"

    def test_another_seed_is_as_good(self) -> None:
        for seed in range(3):
            self.play(Case.busy(19), costs=COSTS, seed=seed)

    def test_names_of_jobs_do_not_matter(self) -> None:
        case = Case.busy(20)
        renamed = case.changed(lambda job: replace(job, id=f"{97 * job.sequence % 101:03}"))
        plain, other = (self.play(one, costs=COSTS) for one in (case, renamed))
        assert list(plain.ledger.finish) == list(other.ledger.finish), "ties are decided by the jobs' names"

    def test_sees_no_true_duration(self) -> None:
        for predictor in ("history", "declared"):
            case = Case.busy(21)
            sealed = SealedDurations(case.durations)
            self.play(case, costs=COSTS, predictor=predictor, durations=sealed)
            assert sealed.reads == len(case.jobs)

    def test_asks_for_the_estimates_that_it_reads(self) -> None:
        """Where the ordering doesn't declare `uses_estimates`, to read one raises `PolicyError`."""
        for placement in ("pool", "pack"):
            self.play(Case.busy(24), placement=placement, costs=COSTS, predictor="noisy:0.5")

    def test_reads_no_clock_and_no_global_random_generator(self) -> None:
        for placement in ("pool", "pack"):
            with no_hidden_inputs():
                self.play(Case.busy(22, jobs=20), placement=placement, costs=COSTS)

    def test_rests_while_nothing_happens(self) -> None:
        """A policy may wake itself for a reason, not every second of a year."""
        case = Case.of(rows=[("running", 0, YEAR_S, 4)])
        assert self.play(case, costs=COSTS).decisions < FEW_DECISIONS
        late = Case.of(rows=[("early", 0, 10, 4), ("late", YEAR_S, 10, 4)])
        assert self.play(late, costs=COSTS).decisions < FEW_DECISIONS

    # -- helpers ---------------------------------------------------------------------------------

    def make(self, **arguments: Any) -> Policy:
        """A fresh policy."""
        found = self._factory()(**arguments)
        assert isinstance(found, Policy), f"`policy` makes {found!r}, which is no trainmaster.Policy"
        refuse_faults(found)
        return found

    def play(self, case: Case, **arguments: Any) -> Schedule:
        """Simulate and audit a case under the policy; see `trainmaster.testing.schedules.play`."""
        return play(self._factory(), case, **arguments)

    def play_all(self, placement: str, costs: Costs) -> None:
        """Workloads of their own under each predictor."""
        for seed, predictor in enumerate(("oracle", "history", "noisy:0.5", "declared")):
            self.play(Case.busy(seed), placement=placement, costs=costs, predictor=predictor)

    def knob_names(self) -> set[str]:
        """Names of the policy's knobs."""
        return {knob.name for knob in self.make().all_knobs()}

    def _factory(self) -> PolicyFactory:
        # A plain function must not be bound as if it were a method.
        found = inspect.getattr_static(type(self), "policy", None)
        assert found is not None, "set `policy` to a Policy class"
        factory: PolicyFactory = found.__func__ if isinstance(found, staticmethod) else found
        return factory


def _is_number(knob: Knob) -> bool:
    return isinstance(knob.default, int | float) and not isinstance(knob.default, bool)


def _ends(knob: Knob) -> Sequence[Value]:
    """The outermost values of a knob."""
    if isinstance(knob.default, bool):
        return (False, True)
    if isinstance(knob.default, str):
        return knob.choices
    kind = type(knob.default)
    return [kind(end) for end in (knob.low, knob.high) if math.isfinite(end)]
