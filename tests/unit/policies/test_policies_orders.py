"""Each preemptive policy by known answers: who is next, who gives way, and when that changes."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_helpers import FREE, Fate, ask, fates, stopped

from trainmaster.core.state import JobState
from trainmaster.model.job import Job, Request
from trainmaster.policies.gittins import GittinsIndex, positions
from trainmaster.policies.parts.ordering import (
    AttainedService,
    PriorityClasses,
    RoundRobin,
    by_submit,
    rank,
)
from trainmaster.sim.options import Costs

BOTH = pytest.mark.parametrize("placement", ["pack", "pool"])


def waiting(sequence: int = 0, *, gpus: int = 1, submit: int = 0, priority: int = 0) -> JobState:
    """A job that waits since it came."""
    return JobState(Job(f"j{sequence}", sequence, submit, Request(gpus * 1000), priority=priority), submit)


class TestKeys:
    def test_the_value_decides_then_the_sequence(self) -> None:
        first, second = waiting(1), waiting(2)
        assert rank(5, second) < rank(6, first)
        assert rank(5, first) < rank(5, second)
        assert rank(-1, second) < rank(0, first), "negative values too"

    def test_level_then_submission_then_sequence(self) -> None:
        early, late = waiting(2, submit=3), waiting(1, submit=4)
        assert by_submit(0, late) < by_submit(1, early)
        assert by_submit(1, early) < by_submit(1, late)
        assert by_submit(1, waiting(1, submit=3)) < by_submit(1, early)
        assert by_submit(0, waiting(0, submit=(1 << 64) - 1)) < by_submit(1, waiting(0))


class TestSrtf:
    @BOTH
    def test_the_shorter_displaces_the_longer_which_goes_on_where_it_was(self, placement: str) -> None:
        jobs = {"long": ask(0, 100), "short": ask(40, 20), "mid": ask(45, 50)}
        assert fates("srtf(min_run_s=0)", jobs, placement=placement) == {
            "long": Fate(0, 170, 1),
            "short": Fate(40, 60),
            "mid": Fate(60, 110),
        }

    @BOTH
    def test_work_left_counts_not_work_in_all(self, placement: str) -> None:
        jobs = {"a": ask(0, 100), "b": ask(60, 50)}
        assert fates("srtf(min_run_s=0)", jobs, placement=placement)["a"] == Fate(0, 100)

    @BOTH
    def test_a_tie_leaves_the_running_one_alone(self, placement: str) -> None:
        jobs = {"a": ask(0, 100), "b": ask(40, 60)}
        assert stopped(fates("srtf(min_run_s=0)", jobs, placement=placement)) == []

    def test_costs_are_charged_for_the_interruption_and_only_then(self) -> None:
        """Stopped at 10, 6 s to write a checkpoint, the short one 20 s, 24 s to restore, 90 s left."""
        jobs = {"long": ask(0, 100), "short": ask(10, 20)}
        found = fates("srtf(min_run_s=0)", jobs, costs=Costs())
        assert found == {"long": Fate(0, 10 + 6 + 20 + 24 + 90, 1), "short": Fate(16, 36)}


class TestSrsf:
    @BOTH
    def test_service_is_time_times_gpus(self, placement: str) -> None:
        """4 GPUs x 30 s is more than 1 GPU x 100 s."""
        jobs = {"x": ask(0, 10, 4), "wide": ask(1, 30, 4), "narrow": ask(2, 100, 1)}
        found = fates("srsf(min_run_s=0)", jobs, gpus=4, placement=placement)
        assert found["narrow"] == Fate(10, 110)
        assert found["wide"].start == 110

    @BOTH
    def test_a_wide_job_nears_its_end_faster(self, placement: str) -> None:
        """At 20 the wide job has 40 GPU-s left; one of 50 waits, one of 30 displaces it."""
        jobs = {"wide": ask(0, 30, 4), "fifty": ask(20, 50, 1), "thirty": ask(20, 30, 1)}
        found = fates("srsf(min_run_s=0)", jobs, gpus=4, placement=placement)
        assert (found["thirty"], found["wide"].stops) == (Fate(20, 50), 1)
        jobs.pop("thirty")
        jobs["fifty"] = ask(20, 50, 1)
        jobs["wide"] = ask(0, 30, 4)
        assert fates("srsf(min_run_s=0)", jobs, gpus=4, placement=placement)["fifty"].start == 30


class TestLas:
    @BOTH
    def test_a_job_drops_at_the_very_instant_and_gives_way(self, placement: str) -> None:
        """2 GPUs reach 60 GPU-s after 30 s; the newcomer has had nothing."""
        jobs = {"a": ask(0, 100, 2), "b": ask(5, 10, 2)}
        assert fates("las(limit=60,min_run_s=0)", jobs, gpus=2, placement=placement) == {
            "a": Fate(0, 110, 1),
            "b": Fate(30, 40),
        }

    @BOTH
    def test_within_a_queue_the_order_of_submission(self, placement: str) -> None:
        jobs = {"a": ask(0, 40), "b": ask(1, 40), "c": ask(2, 40)}
        found = fates("las(limit=1000,min_run_s=0)", jobs, placement=placement)
        assert [fate.start for fate in found.values()] == [0, 40, 80]
        assert stopped(found) == []

    @BOTH
    def test_the_last_queue_is_first_come_first_served(self, placement: str) -> None:
        jobs = {"a": ask(0, 30), "b": ask(1, 30)}
        assert fates("las(limit=10,min_run_s=0)", jobs, placement=placement) == {
            "a": Fate(0, 40, 1),
            "b": Fate(10, 60, 1),
        }

    def test_levels_and_limits(self) -> None:
        order = AttainedService([10, 40])
        assert [order.level(service) for service in (0, 9, 10, 39, 40, 10**30)] == [0, 0, 1, 1, 2, 2]

    def test_the_next_drop_is_rounded_up_to_a_whole_nanosecond(self) -> None:
        order = AttainedService([10_000])
        job = waiting(gpus=3)
        job.running_since = 100
        drop = order.next_change(job, 100)
        assert drop == 104
        assert order.level(job.attained(drop - 1) * 3000) == 0
        assert order.level(job.attained(drop) * 3000) == 1
        assert order.next_change(job, drop) is None

    def test_more_queues_grow_by_a_factor(self) -> None:
        """Limits 10, 20, 40: with equal jobs each drop changes who runs."""
        jobs = {"a": ask(0, 15), "b": ask(0, 15)}
        assert fates("las(limit=10,queues=4,factor=2,min_run_s=0)", jobs) == {
            "a": Fate(0, 25, 1),
            "b": Fate(10, 30, 1),
        }

    def test_work_lost_with_a_node_counts_as_service(self) -> None:
        job = waiting()
        job.running_since = 0
        job.pause(50)
        job.progress = 10
        assert (job.attained(60), job.done(60)) == (50, 10)


class TestPriority:
    @BOTH
    def test_the_youngest_of_the_lowest_class_gives_way_and_comes_back_first(self, placement: str) -> None:
        """e1 and e2 run, e3 waits, e4 is more urgent; when it goes, e2 resumes before e3 (scenario 19)."""
        jobs = {
            "e1": ask(0, 1000),
            "e2": ask(1, 1000),
            "e3": ask(2, 1000),
            "e4": ask(10, 50, priority=1),
        }
        found = fates("priority(min_run_s=0)", jobs, gpus=2, placement=placement)
        assert stopped(found) == ["e2"]
        assert (found["e2"].finish, found["e3"].start) == (1051, 1000)

    @BOTH
    def test_a_lower_class_goes_before_an_older_job_of_a_higher_one(self, placement: str) -> None:
        jobs = {"low": ask(0, 500, priority=0), "mid": ask(1, 500, priority=1), "H": ask(2, 10, priority=2)}
        assert stopped(fates("priority(min_run_s=0)", jobs, gpus=2, placement=placement)) == ["low"]

    @BOTH
    def test_equals_never_displace_each_other_however_long_one_waited(self, placement: str) -> None:
        jobs = {"a": ask(0, 10_000), "b": ask(1, 10)}
        found = fates("priority(min_run_s=0,ageing_s=1)", jobs, placement=placement)
        assert (stopped(found), found["b"].start) == ([], 10_000)

    @BOTH
    def test_an_aged_job_that_may_not_displace_anybody_holds_up_nobody(self, placement: str) -> None:
        """`low2` stands before `high` in the queue, asks the same, and can't displace `low`."""
        jobs = {
            "first": ask(0, 100_000, 2, priority=1),
            "low": ask(1, 864_000, 2),
            "low2": ask(2, 864_000, 1),
            "high": ask(100_002, 3600, 1, priority=1),
        }
        found = fates("priority(min_run_s=0)", jobs, gpus=2, placement=placement)
        assert found["high"].start == 100_002

    def test_ageing_moves_ahead_in_the_queue(self) -> None:
        order = PriorityClasses(100, preemptive=True)
        old, new = waiting(0, submit=0), waiting(1, submit=250, priority=2)
        assert order.pending_key(new, 0) > order.pending_key(old, 0), "250 of waiting are worth 2.5"
        assert order.challenge(new, 0) < order.running_key(old, 0), "who runs is judged by class alone"
        assert order.challenge(old, 0) > order.running_key(old, 0)

    def test_negative_priorities_are_lower_still(self) -> None:
        order = PriorityClasses(0, preemptive=True)
        keys = [order.pending_key(waiting(0, priority=p), 0) for p in (1 << 40, 2, 0, -3, -(1 << 40))]
        assert keys == sorted(keys)


class TestDrf:
    """8 GPUs, P runs four gangs of 2; Q submits one gang (scenario 14)."""

    @BOTH
    @pytest.mark.parametrize(("size", "victims"), [(6, 0), (5, 0), (4, 2), (3, 2), (2, 1), (1, 1)])
    def test_who_is_above_its_share_gives_way(self, placement: str, size: int, victims: int) -> None:
        jobs = {f"p{row}": ask(0, 1000, 2, tenant="P") for row in range(4)}
        jobs["q"] = ask(10, 100, size, tenant="Q")
        found = fates("drf(min_run_s=0)", jobs, gpus=8, placement=placement)
        assert found["q"].start == (10 if victims else 1000)
        assert stopped(found) == [f"p{row}" for row in range(4)][4 - victims :], "the latest first"

    @BOTH
    def test_halves_come_about_and_stay(self, placement: str) -> None:
        jobs = {f"a{row}": ask(0, 1000, tenant="a") for row in range(10)}
        jobs |= {f"b{row}": ask(1, 1000, tenant="b") for row in range(10)}
        found = fates("drf(min_run_s=0)", jobs, gpus=10, placement=placement)
        assert stopped(found) == [f"a{row}" for row in range(5, 10)], "five give way, once"
        assert [found[f"b{row}"].start for row in range(5)] == [1] * 5

    @BOTH
    def test_weights(self, placement: str) -> None:
        jobs = {f"a{row}": ask(0, 1000, tenant="a") for row in range(8)}
        jobs |= {f"b{row}": ask(1, 1000, tenant="b") for row in range(8)}
        found = fates("drf(min_run_s=0)", jobs, gpus=8, weights={"b": 3.0}, placement=placement)
        assert len(stopped(found)) == 6

    def test_a_stopping_job_counts_to_nobody(self) -> None:
        """a's three GPUs are being given back while it is decided who comes next."""
        jobs = {
            "a": ask(0, 1000, 3, tenant="a"),
            "c1": ask(1, 1000, 1, tenant="c"),
            "a small": ask(2, 1000, 1, tenant="a"),
            "c2": ask(3, 1000, 2, tenant="c"),
        }
        found = fates("drf(min_run_s=0)", jobs, gpus=3, costs=Costs(checkpoint_s=60, restore_s=0))
        assert found["c1"].start == found["a small"].start == 61
        assert [fate.stops for fate in found.values()] == [1, 0, 0, 0]


class TestTimeslice:
    @BOTH
    def test_everybody_gets_a_slice_in_turn(self, placement: str) -> None:
        jobs = {"a": ask(0, 100), "b": ask(0, 100), "c": ask(0, 40)}
        found = fates("timeslice(quantum_s=30,min_run_s=0)", jobs, placement=placement)
        # a 0-30, b 30-60, c 60-90, a 90-120, b 120-150, c 150-160, a 160-190, b 190-220, a 220-230, b
        assert found == {"a": Fate(0, 230, 3), "b": Fate(30, 240, 3), "c": Fate(60, 160, 1)}

    @BOTH
    def test_who_waited_longest_is_next_whatever_its_size(self, placement: str) -> None:
        jobs = {"x": ask(0, 50, 2), "one": ask(1, 10, 1), "two": ask(2, 10, 2), "three": ask(3, 10, 1)}
        found = fates("timeslice(min_run_s=0)", jobs, gpus=2, placement=placement)
        assert found["one"].start == found["three"].start == 50

    def test_a_job_within_its_slice_is_never_stopped(self) -> None:
        jobs = {"a": ask(0, 59), "b": ask(1, 10)}
        assert fates("timeslice(quantum_s=60,min_run_s=0)", jobs) == {"a": Fate(0, 59), "b": Fate(59, 69)}

    def test_nobody_is_stopped_while_nobody_waits(self) -> None:
        assert fates("timeslice(quantum_s=10,min_run_s=0)", {"a": ask(0, 1000)})["a"] == Fate(0, 1000)

    def test_keys(self) -> None:
        order = RoundRobin(30)
        job = waiting()
        job.running_since = 100
        assert order.next_change(job, 100) == 130
        assert order.next_change(job, 130) is None
        assert order.running_key(job, 129) < order.challenge(waiting(5), 129) < order.running_key(job, 130)
        longer = waiting(9)
        longer.running_since = 50
        assert order.running_key(longer, 130) > order.running_key(job, 130)


def gittins_by_definition(services: list[int], limits: list[int]) -> list[Fraction]:
    """The index of each level: the best of P(done within d) / E[service used within d]."""
    found = []
    for attained in [0, *limits]:
        alive = [service for service in services if service > attained]
        best = Fraction(0)
        for end in [*limits, max(services)]:
            if end > attained and alive:
                done = sum(service <= end for service in alive)
                used = sum(min(service, end) - attained for service in alive)
                best = max(best, Fraction(done, used))
        found.append(best)
    return found


class TestGittins:
    @given(
        services=st.lists(st.integers(1, 60), min_size=1, max_size=12),
        steps=st.lists(st.integers(1, 20), min_size=1, max_size=5),
    )
    def test_positions_are_those_of_the_definition(self, services: list[int], steps: list[int]) -> None:
        limits = [sum(steps[: row + 1]) for row in range(len(steps))]
        index = gittins_by_definition(services, limits)
        best_first = sorted(range(len(index)), key=lambda level: (-index[level], level))
        found = positions(sorted(services), limits)
        assert sorted(found) == list(range(len(index)))
        order = sorted(range(len(index)), key=lambda level: found[level])
        # Ratios are floats in there: equal ones may change places.
        assert [float(index[level]) for level in order] == pytest.approx(
            [float(index[level]) for level in best_first], rel=1e-12
        )

    def test_before_anything_is_known_least_service_comes_first(self) -> None:
        assert GittinsIndex([10, 20], history=10, refresh_every=5).positions == [0, 1, 2]

    def test_the_table_is_refreshed_every_so_many_jobs_from_the_last_ones(self) -> None:
        order = GittinsIndex([10_000, 20_000], history=3, refresh_every=2)
        for number, ran in enumerate((5, 5, 30, 30, 30, 30)):
            job = waiting(number)
            job.time_run = ran
            order.finished(job, 0)
            if number == 1:
                assert order.positions == positions([5000, 5000], order.limits)
        assert order.positions == positions([30_000] * 3, order.limits) == [2, 1, 0]

    def test_a_job_near_the_usual_end_goes_first(self) -> None:
        """All finished jobs took 100 s: whoever has had most is nearest to it, unlike under las."""
        jobs = {f"past{row}": ask(0, 100) for row in range(10)}
        jobs |= {"begun": ask(1000, 100), "new": ask(1070, 100)}
        specification = "gittins(first_limit=50,levels=3,refresh_every=5,history=10,min_run_s=0)"
        found = fates(specification, jobs)
        assert stopped({name: found[name] for name in ("begun", "new")}) == []
        assert found["begun"] == Fate(1000, 1100)
        jobs = {"begun": ask(1000, 100), "new": ask(1070, 100)}
        assert fates("las(limit=50,min_run_s=0)", jobs)["begun"].stops == 1


def test_equal_requests_wait_in_the_order_of_their_key_again_after_a_stop() -> None:
    """Stopped twice and back under the same key: never seen twice in the queue."""
    jobs = {"a": ask(0, 100, priority=0), "x": ask(10, 10, priority=1), "y": ask(30, 10, priority=1)}
    found = fates("priority(min_run_s=0)", jobs, costs=FREE)
    assert found["a"] == Fate(0, 120, 2)
