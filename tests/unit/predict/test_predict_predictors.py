"""Predictors: right from the first job on, better with evidence, sensible for jobs that outlive them."""

from __future__ import annotations

import math
import random
from statistics import NormalDist, median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job, Request
from trainmaster.model.ports import Estimate, Predictor
from trainmaster.model.units import HOUR, SECOND
from trainmaster.predict import PREDICTORS, Declared, History, Noisy, Oracle, make_predictor

GPU0 = Allocation.of([Share(0, 1, 1000)])


def job(
    name: str = "j", *, gpus: int = 1, user: str = "u", tenant: str = "t", declared_s: int | None = None
) -> Job:
    declared = None if declared_s is None else declared_s * SECOND
    return Job(name, 0, 0, Request(gpus * 1000), tenant=tenant, user=user, declared=declared)


def total_s(predictor: Predictor, asked: Job, attained_s: float = 0) -> float:
    return predictor.predict(asked, round(attained_s * SECOND), 0).total / SECOND


class TestHistory:
    def test_knows_something_before_the_first_job_has_finished(self) -> None:
        estimate = History().predict(job(), 0, 0)
        assert estimate == Estimate(History.FIRST_GUESS, History.FIRST_SPREAD)

    def test_the_first_finished_job_moves_it_and_the_tenth_settles_it(self) -> None:
        history = History()
        guesses = []
        for _ in range(10):
            guesses.append(total_s(history, job()))
            history.observe(job(), 10 * SECOND, 0)
        assert guesses == sorted(guesses, reverse=True)
        assert guesses[1] < guesses[0]
        assert total_s(history, job()) == pytest.approx(10, rel=0.3)

    def test_the_particular_outweighs_the_general(self) -> None:
        history = History()
        for _ in range(30):
            history.observe(job(user="quick"), 60 * SECOND, 0)
            history.observe(job(user="slow"), 6 * HOUR, 0)
        assert total_s(history, job(user="quick")) == pytest.approx(60, rel=0.4)
        assert total_s(history, job(user="slow")) == pytest.approx(6 * 3600, rel=0.4)
        assert 60 < total_s(history, job(user="new")) < 6 * 3600, "an unknown user is like the tenant"

    def test_sizes_are_told_apart(self) -> None:
        history = History()
        for _ in range(30):
            history.observe(job(gpus=1), 60 * SECOND, 0)
            history.observe(job(gpus=8), 6 * HOUR, 0)
        assert total_s(history, job(gpus=8)) > 100 * total_s(history, job(gpus=1))

    def test_the_recent_counts_more(self) -> None:
        history = History()
        for _ in range(200):
            history.observe(job(), HOUR, 0)
        for _ in range(100):
            history.observe(job(), 60 * SECOND, 0)
        assert total_s(history, job()) < 200

    def test_certainty_grows_with_evidence_of_equal_jobs(self) -> None:
        history = History()
        spreads = []
        for _ in range(40):
            spreads.append(history.predict(job(), 0, 0).spread)
            history.observe(job(), 100 * SECOND, 0)
        assert spreads[-1] < 0.3 < spreads[0]

    def test_a_job_that_outlived_its_estimate_is_expected_to_last(self) -> None:
        history = History()
        rng = random.Random(1)
        seen = [round(rng.lognormvariate(6, 1)) for _ in range(400)]
        for seconds in seen:
            history.observe(job(), seconds * SECOND, 0)
        assert total_s(history, job()) == pytest.approx(median(seen), rel=0.5)
        guesses = [total_s(history, job(), attained) for attained in (0, 200, 1000, 5000, 20_000)]
        assert guesses == sorted(guesses)
        assert guesses[2:] >= [2000, 10_000, 40_000], "it is not asked again and again"

    def test_the_conditional_median_is_that_of_the_distribution(self) -> None:
        """P(T > t | T > attained) = 1/2 for a lognormal."""
        history = History()
        mean, spread = math.log(History.FIRST_GUESS), History.FIRST_SPREAD
        attained = 3 * History.FIRST_GUESS
        guess = history.predict(job(), attained, 0).total
        normal = NormalDist(mean, spread)
        beyond = 1 - normal.cdf(math.log(attained))
        assert (1 - normal.cdf(math.log(guess))) / beyond == pytest.approx(0.5, rel=1e-6)

    def test_never_longer_than_declared_unless_the_job_is(self) -> None:
        history = History()
        asked = job(declared_s=100)
        assert total_s(history, asked) == 100
        assert total_s(history, asked, 99) == 100
        assert total_s(history, asked, 100) > 100

    @settings(max_examples=100)
    @given(
        runs=st.lists(st.integers(1, 10**6), max_size=20),
        attained=st.integers(0, 10**8),
        declared=st.none() | st.integers(1, 10**6),
    )
    def test_always_beyond_what_was_attained(
        self, runs: list[int], attained: int, declared: int | None
    ) -> None:
        for predictor in (History(), Declared(), Noisy(lambda job: 5 * SECOND, 1.0)):
            for seconds in runs:
                predictor.observe(job(), seconds * SECOND, 0)
            estimate = predictor.predict(job(declared_s=declared), attained * SECOND, 0)
            assert estimate.total > attained * SECOND
            assert estimate.spread >= 0

    def test_jobs_without_user_and_tenant_work(self) -> None:
        history = History()
        history.observe(job(user="", tenant=""), 50 * SECOND, 0)
        assert total_s(history, job(user="", tenant="")) < total_s(History(), job(user="", tenant=""))

    def test_a_run_of_no_time_counts_as_a_second(self) -> None:
        history = History()
        for _ in range(50):
            history.observe(job(), 0, 0)
        assert total_s(history, job()) == pytest.approx(1, rel=0.3)


class TestDeclared:
    def test_is_what_the_user_said(self) -> None:
        assert Declared().predict(job(declared_s=300), 0, 0) == Estimate(300 * SECOND)

    def test_and_twice_what_it_has_had_once_that_is_over(self) -> None:
        assert total_s(Declared(), job(declared_s=300), 299) == 300
        assert total_s(Declared(), job(declared_s=300), 300) == 600
        assert total_s(Declared(), job(declared_s=300), 600) == 1200

    def test_falls_back_to_similar_jobs(self) -> None:
        declared, history = Declared(), History()
        for predictor in (declared, history):
            predictor.observe(job(), 77 * SECOND, 0)
        assert declared.predict(job(), 0, 0) == history.predict(job(), 0, 0)


class TestNoisy:
    def noisy(self, seed: int = 0, sigma: float = 0.5) -> Noisy:
        return Noisy(lambda job: 1000 * SECOND, sigma, seed)

    def test_the_error_belongs_to_the_job_not_to_the_order_of_questions(self) -> None:
        names = [f"job-{number}" for number in range(50)]
        first, second = self.noisy(), self.noisy()
        forwards = {name: first.predict(job(name), 0, 0).total for name in names}
        backwards = {name: second.predict(job(name), 0, 0).total for name in reversed(names)}
        assert forwards == backwards
        assert first.predict(job("job-7"), 0, 5).total == forwards["job-7"], "asked again"

    def test_the_seed_changes_it(self) -> None:
        assert total_s(self.noisy(0), job()) != total_s(self.noisy(1), job())

    def test_it_is_lognormal_with_sigma(self) -> None:
        noisy = self.noisy(sigma=0.5)
        logs = [math.log(total_s(noisy, job(str(number))) / 1000) for number in range(2000)]
        mean = sum(logs) / len(logs)
        spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / len(logs))
        assert mean == pytest.approx(0, abs=0.05)
        assert spread == pytest.approx(0.5, rel=0.1)

    def test_without_sigma_it_is_the_truth(self) -> None:
        assert self.noisy(sigma=0.0).predict(job(), 0, 0) == Estimate(1000 * SECOND, 0.0)


class TestSpeed:
    def test_without_a_profile_every_placement_is_equally_fast(self) -> None:
        for predictor in (Oracle(lambda job: 1), History(), Declared(), Noisy(lambda job: 1, 0.1)):
            assert predictor.speed(job(), GPU0) == 1.0

    def test_a_profile_is_asked(self) -> None:
        assert History(lambda job, allocation: allocation.milli / 4000).speed(job(), GPU0) == 0.25


class TestByName:
    @pytest.mark.parametrize(
        ("name", "kind", "exact"),
        [
            ("oracle", Oracle, True),
            ("declared", Declared, False),
            ("history", History, False),
            ("noisy:0", Noisy, False),
            ("noisy:9.99", Noisy, False),
        ],
    )
    def test_each(self, name: str, kind: type[Predictor], exact: bool) -> None:
        predictor = make_predictor(name, lambda job: 42)
        assert type(predictor) is kind
        assert predictor.exact is exact

    def test_the_oracle_knows(self) -> None:
        assert make_predictor("oracle", lambda job: 42).predict(job(), 41, 0) == Estimate(42)

    @pytest.mark.parametrize(
        ("name", "what"),
        [
            ("orakle", "unknown predictor 'orakle' (did you mean 'oracle'?)"),
            ("", "unknown predictor '' (known: declared, history, noisy, oracle)"),
            ("history:3", "predictor history takes no value, found 'history:3'"),
            ("oracle:", "predictor oracle takes no value, found 'oracle:'"),
            ("noisy", "predictor 'noisy': sigma must be a number from 0 to 10 (for example noisy:0.3)"),
        ],
    )
    def test_what_is_wrong_is_said(self, name: str, what: str) -> None:
        with pytest.raises(InputError) as caught:
            make_predictor(name, lambda job: 1)
        assert str(caught.value) == what

    @pytest.mark.parametrize("sigma", ["", "x", "-0.1", "10", "nan", "inf", "1e400"])
    def test_sigma_is_a_number_from_0_to_10(self, sigma: str) -> None:
        with pytest.raises(InputError, match="sigma must be a number from 0 to 10"):
            make_predictor(f"noisy:{sigma}", lambda job: 1)

    def test_names(self) -> None:
        assert PREDICTORS == ("oracle", "declared", "history", "noisy")
