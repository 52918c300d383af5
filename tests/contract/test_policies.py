"""Every built-in policy keeps the contract; policies that don't are found out."""

from __future__ import annotations

import random
import time
from datetime import datetime
from functools import partial
from typing import ClassVar

import pytest

from trainmaster.model.errors import InputError, PolicyError
from trainmaster.model.ports import ClusterView, JobView
from trainmaster.policies import Knob, Policy
from trainmaster.policies.drf import Drf
from trainmaster.policies.fifo import Fifo
from trainmaster.policies.gittins import Gittins
from trainmaster.policies.las import Las
from trainmaster.policies.parts.backfill import Easy, Greedy
from trainmaster.policies.parts.ordering import Order, rank
from trainmaster.policies.priority import Priority
from trainmaster.policies.registry import BUILT_IN, policy_class
from trainmaster.policies.sjf import Sjf
from trainmaster.policies.srsf import Srsf
from trainmaster.policies.srtf import Srtf
from trainmaster.policies.standard import Standard
from trainmaster.policies.timeslice import Timeslice
from trainmaster.testing import PolicyContract


class TestFifo(PolicyContract):
    policy = Fifo


class TestFifoGreedy(PolicyContract):
    policy = partial(Fifo, backfill="greedy")


class TestFifoEasy(PolicyContract):
    policy = partial(Fifo, backfill="easy")


class TestFifoConservative(PolicyContract):
    policy = partial(Fifo, backfill="conservative")


class TestSjf(PolicyContract):
    policy = Sjf


class TestSrtf(PolicyContract):
    policy = Srtf


class TestSrsf(PolicyContract):
    policy = Srsf


class TestLas(PolicyContract):
    policy = Las


class TestLasWithDemotions(PolicyContract):
    policy = partial(Las, queues=4, limit=300, factor=3)


class TestGittins(PolicyContract):
    policy = partial(Gittins, refresh_every=5, first_limit=60)


class TestPriority(PolicyContract):
    policy = Priority


class TestPriorityWithoutAgeing(PolicyContract):
    policy = partial(Priority, ageing_s=0)


class TestDrf(PolicyContract):
    policy = Drf


class TestStandard(PolicyContract):
    policy = Standard


class TestTimeslice(PolicyContract):
    policy = partial(Timeslice, quantum_s=120)


class TestInRounds(PolicyContract):
    @staticmethod
    def policy(**arguments: object) -> Policy:
        return Srtf(**{"round_s": 60, **arguments})  # type: ignore[arg-type]


CONTRACTS = [found for name, found in sorted(globals().items()) if name.startswith("Test")]


def test_no_built_in_policy_is_left_out() -> None:
    covered = {type(contract().make()) for contract in CONTRACTS}
    assert covered == {policy_class(name) for name in BUILT_IN}


# -- policies that break it -----------------------------------------------------------------------


class Bad(Policy):
    """A policy with a flaw."""

    name = "bad"
    source = "these tests"


class StarvesLargeGangs(Bad):
    """Never starts a gang of more than four GPUs."""

    def plan(self, view: ClusterView) -> None:
        for members in view.pending_classes:
            while members.request.gpus <= 4_000 and (job := members.head()) is not None:
                gpus = self.placement.find(view.capacity, members.request, relaxed=members.relaxed)
                if gpus is None:
                    break
                view.start(job, gpus)


class Shoves(Bad):
    """Stops whoever runs when somebody waits, in turn."""

    preemptive = True

    def compose(self) -> None:
        self.walk = Greedy()

    def may_stop(self, job: JobView, view: ClusterView) -> bool:
        """Whom it thinks it may stop."""
        return job.job.request.preemptible and job.protected_until <= view.now

    def plan(self, view: ClusterView) -> None:
        super().plan(view)
        if any(True for _ in view.pending_classes):
            for job in list(view.running):
                if self.may_stop(job, view):
                    view.preempt(job)


class StopsProtectedJobs(Shoves):
    """Doesn't ask whether a job has just started."""

    def may_stop(self, job: JobView, view: ClusterView) -> bool:
        return job.job.request.preemptible


class StopsWhatIsNotPreemptible(Shoves):
    """Doesn't ask whether a job may be stopped at all."""

    def may_stop(self, job: JobView, view: ClusterView) -> bool:
        return job.protected_until <= view.now


class ShortensProtection(Bad):
    """Has a knob for the minimum run time and doesn't keep it."""

    preemptive = True

    def compose(self) -> None:
        self.walk = Greedy()
        self.min_run = 0


class StopsForNobody(Bad):
    """Stops whoever has run for a minute, though nobody waits."""

    preemptive = True

    def compose(self) -> None:
        self.walk = Greedy()

    def plan(self, view: ClusterView) -> None:
        super().plan(view)
        for job in list(view.running):
            if job.job.request.preemptible and job.protected_until <= view.now:
                view.preempt(job)
        if view.holders:
            view.wake(view.now + 120 * 10**9)


class Overcommits(Bad):
    """Gives every job the first GPUs of the first node."""

    def plan(self, view: ClusterView) -> None:
        for members in view.pending_classes:
            gpus = self.placement.find(type(view.capacity)(view.cluster), members.request)
            while gpus is not None and (job := members.head()) is not None:
                view.start(job, gpus)


class DrawsGlobally(Bad):
    """Draws from the global random generator."""

    def plan(self, view: ClusterView) -> None:
        if random.random() < 0.9 or not view.running:
            super().plan(view)
        else:
            view.wake(view.now + 1)


class ShufflesGlobally(Order):
    """A key from the global random generator, by way of Python code."""

    def pending_key(self, job: JobView, now: int) -> int:
        return rank(random.randint(0, 9), job)


class ShuffledOrder(Bad):
    """Orders by lot."""

    def compose(self) -> None:
        self.ordering = ShufflesGlobally()


class ReadsTheClock(Bad):
    """Looks at the wall clock."""

    def plan(self, view: ClusterView) -> None:
        assert time.monotonic() > 0
        super().plan(view)


class ReadsTheDate(Bad):
    """Looks at the wall clock, by way of datetime."""

    def plan(self, view: ClusterView) -> None:
        assert datetime.now().year > 2000
        super().plan(view)


class ByName(Order):
    """Ties are decided by the jobs' names."""

    def pending_key(self, job: JobView, now: int) -> int:
        return rank(int(job.job.id.rpartition("-")[2]) * 37 % 101, job)


class Nominal(Bad):
    """Orders by name."""

    def compose(self) -> None:
        self.ordering = ByName()


class KeepsStateInTheClass(Bad):
    """Remembers earlier simulations."""

    turn: ClassVar[list[int]] = []

    def plan(self, view: ClusterView) -> None:
        self.turn.append(1)
        if len(self.turn) % 31:
            super().plan(view)
        else:
            view.wake(view.now + 10**9)


class Restless(Bad):
    """Wakes itself every second."""

    def plan(self, view: ClusterView) -> None:
        super().plan(view)
        view.wake(view.now + 10**9)


class ReadsTheTruth(Bad):
    """Finds the oracle's durations by way of Python."""

    def plan(self, view: ClusterView) -> None:
        import sys

        frame = sys._getframe()
        while frame is not None and "durations" not in frame.f_locals:
            frame = frame.f_back  # type: ignore[assignment]
        assert frame is None or frame.f_locals["durations"][0] >= 0
        super().plan(view)


class SilentKnob(Bad):
    """Its knob says nothing and has no range."""

    knobs = (Knob("size", 3, " "),)


class BoundlessKnob(Bad):
    """Its knob has no range."""

    knobs = (Knob("size", 3, "how large"),)


class OutsideKnob(Bad):
    """Its knob's default is out of range."""

    knobs = (Knob("size", 3, "how large", low=5),)


class FailingKnob(Bad):
    """One value of its knob doesn't work."""

    knobs = (Knob("fast", False, "be quick"),)

    def compose(self) -> None:
        if self.settings["fast"]:
            raise NotImplementedError("not quick")


class Anonymous(Bad):
    """Has no name."""

    name = ""


class Sourceless(Bad):
    """Says nothing about where it comes from."""

    source = ""


class Undocumented(Bad):
    __doc__ = ""


class SecretlyPreemptive(Bad):
    """Its ordering preempts, it says it doesn't."""

    def compose(self) -> None:
        self.ordering = Srtf().ordering


class ReadsEstimates(Order):
    """By estimated work left, without asking for estimates."""

    def pending_key(self, job: JobView, now: int) -> int:
        return rank(job.remaining(now), job)


class Forgetful(Bad):
    """Its ordering doesn't say that it reads estimates."""

    def compose(self) -> None:
        self.ordering = ReadsEstimates()


class EasyWithoutEstimates(Bad):
    """Reserves by expected ends that nobody predicted."""

    def compose(self) -> None:
        self.walk = Easy()


class Misplaced(Forgetful):
    """Says it on the policy, where nothing reads it."""

    uses_estimates = True


BROKEN = [
    (StarvesLargeGangs, "test_finishes_packed", "never finished: job-"),
    (StarvesLargeGangs, "test_a_gang_of_the_whole_cluster_among_small_jobs", "never finished: whole$"),
    (StopsProtectedJobs, "test_minimum_run_time_is_respected", "protected by the minimum run time"),
    (StopsWhatIsNotPreemptible, "test_what_is_not_preemptible_is_never_stopped", "it is not preemptible"),
    (ShortensProtection, "test_minimum_run_time_is_respected", "must leave min_run alone"),
    (StopsForNobody, "test_one_job", "only was stopped for nobody"),
    (StopsForNobody, "test_nobody_is_stopped_while_there_is_room", "was stopped for nobody"),
    (Shoves, "test_finishes_packed", "was stopped for nobody"),
    (Overcommits, "test_a_burst_of_equal_jobs", "job job-4: the pool has 0 GPUs free, not the 2 asked"),
    (Overcommits, "test_finishes_packed", "job job-1: node node-0 has . whole GPUs free"),
    (DrawsGlobally, "test_the_same_input_gives_the_same_schedule", "two runs differ"),
    (DrawsGlobally, "test_reads_no_clock_and_no_global_random_generator", r"\(random\.random\)"),
    (ShuffledOrder, "test_reads_no_clock_and_no_global_random_generator", "global random generator"),
    (ReadsTheClock, "test_reads_no_clock_and_no_global_random_generator", r"time\.monotonic"),
    (ReadsTheDate, "test_reads_no_clock_and_no_global_random_generator", r"datetime\.now"),
    (Nominal, "test_names_of_jobs_do_not_matter", "the jobs' names"),
    (KeepsStateInTheClass, "test_the_same_input_gives_the_same_schedule", "two runs differ"),
    (Restless, "test_rests_while_nothing_happens", "it keeps waking"),
    (ReadsTheTruth, "test_sees_no_true_duration", "reads a true duration"),
    (SilentKnob, "test_knobs_are_described", "help is one line"),
    (BoundlessKnob, "test_knobs_are_described", "needs a lowest or a highest value"),
    (OutsideKnob, "test_knobs_accept_their_defaults_and_ends", "3 is out of range"),
    (FailingKnob, "test_works_at_the_ends_of_its_knobs", "not quick"),
    (Anonymous, "test_says_what_it_is", "`name` is one lower-case word"),
    (Sourceless, "test_says_what_it_is", "`source` says"),
    (Undocumented, "test_says_what_it_is", "has no docstring"),
    (SecretlyPreemptive, "test_parts_are_complete", "must say `preemptive = True`"),
    (Forgetful, "test_asks_for_the_estimates_that_it_reads", "set `uses_estimates = True` on the ordering"),
    (EasyWithoutEstimates, "test_asks_for_the_estimates_that_it_reads", "set `uses_estimates = True` on the"),
    (Misplaced, "test_parts_are_complete", "set it on ReadsEstimates"),
]


@pytest.mark.parametrize(("policy", "test", "message"), BROKEN)
def test_a_bad_policy_is_found_out(policy: type[Policy], test: str, message: str) -> None:
    contract = type("Contract", (PolicyContract,), {"policy": policy})()
    with pytest.raises((AssertionError, PolicyError, InputError, NotImplementedError), match=message):
        getattr(contract, test)()


@pytest.mark.parametrize("test", [name for name in dir(PolicyContract) if name.startswith("test_")])
def test_their_base_is_fine(test: str) -> None:
    """What fails above fails for its flaw."""
    getattr(type("Contract", (PolicyContract,), {"policy": Bad})(), test)()


def test_without_a_policy_it_says_so() -> None:
    with pytest.raises(AssertionError, match="set `policy`"):
        PolicyContract().test_says_what_it_is()
