"""What a run draws: durations given what is known, and arrivals of the past week."""

from __future__ import annotations

import itertools
import math
import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.forecast.arrivals import BLOCK, DAY, HOUR, Arrivals
from trainmaster.forecast.durations import ALIKE, Curve, Draws, Durations, beyond, tail
from trainmaster.model.job import Deadline, Job, Request
from trainmaster.model.ports import Estimate
from trainmaster.model.units import SECOND
from trainmaster.predict import make_predictor
from trainmaster.sim.snapshot import WEEK, Past

NOW = WEEK


def job(number: int, submit: int = 0, gpus: int = 1000, tenant: str = "t") -> Job:
    return Job(f"j{number}", number, submit, Request(gpus), tenant=tenant)


def known(ran: list[int], running: dict[str, int] | None = None, **facts: str) -> Durations:
    """What is known when jobs of one kind ran so many seconds."""
    past = [Past(job(at), seconds * SECOND, NOW) for at, seconds in enumerate(ran)]
    past += [Past(job(len(ran) + at)) for at in range(len(running or {}))]
    attained = {name: seconds * SECOND for name, seconds in (running or {}).items()}
    predictor = make_predictor(facts.get("predictor", "history"), lambda job: 77 * SECOND)
    for each in past:
        if each.ran is not None:
            predictor.observe(each.job, each.ran, NOW)
    return Durations(predictor, past, attained, NOW)


def drawn(durations: Durations, new: Job, attained: float = 0, runs: int = 400) -> list[float]:
    """Seconds drawn in so many runs."""
    return [
        Draws(durations, random.Random(run)).draw(new, round(attained * SECOND)) / SECOND
        for run in range(runs)
    ]


class TestDurations:
    def test_a_job_is_like_the_last_of_its_kind(self) -> None:
        found = drawn(known([30] * 50 + [500] * 200), job(999))
        assert set(found) == {500.0}, "a run believes in the last hundred at most"

    def test_sometimes_in_few_and_sometimes_in_many(self) -> None:
        found = drawn(known([30] * 80 + [500] * 20), job(999))
        share = found.count(30.0) / len(found)
        assert set(found) == {30.0, 500.0} and 0.1 < share < 0.4

    def test_who_has_run_longer_is_none_of_those_that_ended_sooner(self) -> None:
        found = drawn(known([100] * 50 + [900] * 50), job(999), attained=100)
        assert set(found) == {900.0}

    def test_jobs_that_run_on_count_as_longer(self) -> None:
        """Half of a batch ended after 100 s; the other half has run 150 s already."""
        running = {f"j{at}": 150 for at in range(20, 40)}
        found = drawn(known([100] * 20, running), job(999))
        assert 0.2 < sum(each > 100 for each in found) / len(found) < 0.7
        assert min(found) == 100 and max(found) > 150

    @given(st.integers(1, 10**7), st.integers(0, 99))
    def test_a_job_always_runs_longer_than_it_has(self, attained: int, seed: int) -> None:
        draws = Draws(known([10, 20, 40] * 10), random.Random(seed))
        assert draws.draw(job(999), attained * SECOND) > attained * SECOND

    def test_of_a_kind_that_nobody_knows_the_predictor_tells(self) -> None:
        found = sorted(drawn(known([]), job(999, gpus=32_000)))
        assert math.isclose(found[200], 1_200, rel_tol=0.4), "the first guess of the history"
        assert found[360] > 4_000 and found[40] < 400

    def test_what_is_certain_is_not_drawn(self) -> None:
        assert set(drawn(known([5] * 20, predictor="oracle"), job(999))) == {77.0}

    def test_jobs_of_a_kind_are_late_together(self) -> None:
        """The sum of a batch varies as much as that of a few independent jobs."""
        durations = known([10 * at for at in range(1, 101)])
        sums = []
        for run in range(300):
            draws = Draws(durations, random.Random(run))
            sums.append(fmean(draws.draw(job(at), 0) / SECOND for at in range(1000, 1050)))
        middle = fmean(sums)
        spread = math.sqrt(fmean((each - middle) ** 2 for each in sums))
        assert 0.3 * math.sqrt(ALIKE) * 290 < spread, "independent ones would vary by a seventh of 290"


class TestTails:
    @given(st.floats(1, 1e15), st.floats(1, 1e12), st.floats(0.05, 4), st.floats(0, 0.999999))
    def test_what_lies_beyond_lies_beyond(
        self, attained: float, median: float, spread: float, level: float
    ) -> None:
        estimate = Estimate(round(median), spread)
        assert beyond(attained, estimate, level) >= attained
        assert 0 <= tail(attained, estimate) <= 1

    def test_quantiles_of_the_whole_distribution(self) -> None:
        estimate = Estimate(1_000, 0.5)
        for level in (0.1, 0.5, 0.9):
            value = beyond(0, estimate, level)
            assert math.isclose(1 - tail(value, estimate), level, rel_tol=1e-3)

    def test_a_curve_of_ended_jobs_is_their_share(self) -> None:
        curve = Curve([(10, True), (20, True), (30, True), (40, True)])
        assert [curve.quantile(0, level) for level in (0.1, 0.3, 0.6, 0.99)] == [10, 20, 30, 40]
        assert [curve.quantile(20, level) for level in (0.1, 0.6)] == [30, 40]
        assert (curve.longer(0), curve.longer(20), curve.longest) == (4, 2, 40)

    def test_kaplan_and_meier(self) -> None:
        """Their estimate for 1, 3+, 4, 5+, 5: 4/5, 8/15, 0 or more after the last."""
        curve = Curve([(1, True), (3, False), (4, True), (5, False), (5, True)])
        assert [curve.quantile(0, level) for level in (0.19, 0.21, 0.46, 0.5)] == [1, 4, 4, 5]


class TestArrivals:
    def arrivals(self, past: list[Past], *, end: int = NOW + 3 * DAY, seed: int = 0) -> Arrivals:
        return Arrivals(past, NOW, end, 100, lambda job: 5, random.Random(seed))

    def drawn(self, past: list[Past], **more: int) -> list[Job]:
        arrivals = self.arrivals(past, **more)
        while arrivals.open:
            arrivals.extend()
        return arrivals.jobs

    def test_the_hours_of_the_day_stay(self) -> None:
        """A burst every day at nine."""
        past = [
            Past(job(day * 10 + at, day * DAY + 9 * HOUR + at * SECOND), 60 * SECOND)
            for day in range(7)
            for at in range(10)
        ]
        past.insert(0, Past(job(99, 0), 60 * SECOND))
        found = self.drawn(past)
        assert [(each.submit - NOW) // HOUR for each in found if each.submit % DAY] == [9] * 10 + [
            33
        ] * 10 + [57] * 10
        assert [each.sequence for each in found] == list(range(100, 100 + len(found)))
        assert len({each.id for each in found}) == len(found)
        assert all(one.submit <= other.submit for one, other in itertools.pairwise(found))

    def test_nobody_comes_after_the_end(self) -> None:
        past = [Past(job(at, at * HOUR), SECOND) for at in range(168)]
        found = self.drawn(past, end=NOW + 30 * HOUR)
        assert len(found) == 30 and found[-1].submit < NOW + 30 * HOUR

    def test_without_a_past_nobody_comes(self) -> None:
        assert not self.arrivals([]).open
        assert self.drawn([Past(job(0, NOW))]) == [], "nor when it has just begun"

    def test_a_past_of_an_hour_is_enough(self) -> None:
        past = [Past(job(at, NOW - HOUR + at * 60 * SECOND), SECOND) for at in range(60)]
        found = self.drawn(past, end=NOW + 5 * HOUR)
        assert 250 < len(found) <= 300

    def test_durations_are_those_that_were_seen_or_drawn(self) -> None:
        arrivals = self.arrivals([Past(job(0, NOW - BLOCK), 60 * SECOND), Past(job(1, NOW - BLOCK + 1))])
        arrivals.extend()
        assert list(arrivals.durations.values()) == [60 * SECOND, 5]

    def test_what_is_bound_to_an_instant_moves_along(self) -> None:
        old = Job(
            "a", 0, NOW - BLOCK, Request(1000), deadlines=(Deadline(NOW),), depends_on=("b",), not_before=NOW
        )
        arrivals = self.arrivals([Past(old, 1), Past(job(1, NOW - 1), 1)])
        arrivals.extend()
        moved = arrivals.jobs[0]
        assert moved.submit == NOW and moved.deadlines == (Deadline(NOW + BLOCK),)
        assert moved.not_before == NOW + BLOCK and moved.depends_on == ()


@pytest.mark.parametrize("seed", [0, 1])
def test_draws_are_settled_by_the_seed(seed: int) -> None:
    durations = known([10 * at for at in range(1, 60)])
    one, other = (Draws(durations, random.Random(seed)) for _ in range(2))
    assert [one.draw(job(at), 0) for at in range(20)] == [other.draw(job(at), 0) for at in range(20)]
