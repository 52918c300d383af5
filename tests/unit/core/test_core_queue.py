"""Waiting jobs: heaps that forget lazily, and the merged order of their heads."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from trainmaster.core.running import RunningOrder
from trainmaster.core.state import JobState, PendingJobs
from trainmaster.model.job import Job, Request
from trainmaster.policies.parts.ordering import Order
from trainmaster.policies.parts.queue import Heads, Merged

REQUEST = Request(1000)


class Tickets:
    """Numbers entries as the state does."""

    def __init__(self) -> None:
        self.last = 0

    def add(self, members: PendingJobs, job: JobState, key: int) -> None:
        self.last += 1
        job.pending_key, job.ticket = key, self.last
        members.add(job)


def queue(*keys: int, request: Request = REQUEST) -> tuple[PendingJobs, list[JobState], Tickets]:
    """A class of jobs with these keys."""
    members, tickets = PendingJobs(request, "", False), Tickets()
    jobs = [JobState(Job(f"j{row}", row, 0, request), 0) for row in range(len(keys))]
    for job, key in zip(jobs, keys, strict=True):
        tickets.add(members, job, key)
    return members, jobs, tickets


def names(jobs: Iterator[Any] | Any) -> list[str]:
    return [job.job.id for job in jobs]


class TestPendingJobs:
    def test_in_order_of_their_keys(self) -> None:
        members, _, _ = queue(5, 3, 9, 1)
        assert names(members) == names(members.ordered()) == ["j3", "j1", "j0", "j2"]

    def test_who_left_is_forgotten(self) -> None:
        members, jobs, _ = queue(5, 3, 9, 1)
        jobs[3].ticket = jobs[0].ticket = 0
        assert members.head() is jobs[1]
        assert names(members) == ["j1", "j2"]
        assert names(members.ordered()) == ["j1", "j2"]

    def test_who_came_back_under_the_same_key_is_there_once(self) -> None:
        members, jobs, tickets = queue(5, 3)
        jobs[1].ticket = 0
        tickets.add(members, jobs[1], 3)
        assert names(members) == names(members.ordered()) == ["j1", "j0"]

    def test_who_came_back_under_another_key_stands_there(self) -> None:
        members, jobs, tickets = queue(5, 3)
        tickets.add(members, jobs[1], 8)
        assert names(members) == ["j0", "j1"]
        assert members.head() is jobs[0]

    def test_an_empty_one_has_no_head(self) -> None:
        members, jobs, _ = queue(1)
        jobs[0].ticket = 0
        assert (members.head(), list(members), list(members.ordered())) == (None, [], [])
        assert PendingJobs(REQUEST, "", False).head() is None

    @settings(max_examples=100)
    @given(
        steps=st.lists(st.tuples(st.sampled_from(["add", "leave", "back"]), st.integers(0, 9)), max_size=40)
    )
    def test_agrees_with_a_sorted_list(self, steps: list[tuple[str, int]]) -> None:
        members, tickets = PendingJobs(REQUEST, "", False), Tickets()
        jobs: list[JobState] = []
        waiting: dict[str, int] = {}
        for what, number in steps:
            if what == "add":
                jobs.append(JobState(Job(f"j{len(jobs)}", len(jobs), 0, REQUEST), 0))
                tickets.add(members, jobs[-1], number << 32 | jobs[-1].job.sequence)
                waiting[jobs[-1].job.id] = jobs[-1].pending_key
            elif jobs:
                job = jobs[number % len(jobs)]
                if what == "leave":
                    job.ticket = 0
                    waiting.pop(job.job.id, None)
                else:
                    other = number << 32 | job.job.sequence
                    tickets.add(members, job, job.pending_key if number % 2 else other)
                    waiting[job.job.id] = job.pending_key
            expected = sorted(waiting, key=waiting.__getitem__)
            assert names(members) == expected
            head = members.head()
            assert (head.job.id if head else None) == (expected[0] if expected else None)
        assert names(members.ordered()) == sorted(waiting, key=waiting.__getitem__)


def view_of(*classes: PendingJobs) -> Any:
    """As much of a view as the heads need."""
    return SimpleNamespace(now=0, pending_classes=list(classes))


class TestHeads:
    def test_merge_the_classes(self) -> None:
        ones, small, _ = queue(1, 4, 6)
        twos, large, _ = queue(2, 3, request=Request(2000))
        heads = Heads(view_of(), Order(), (ones, twos))
        seen = []
        while (job := heads.first()) is not None:
            assert heads.members is (ones if job in small else twos)
            seen.append(job)
            job.ticket = 0  # type: ignore[attr-defined]
            heads.advance()
        assert seen == [small[0], large[0], large[1], small[1], small[2]]

    def test_a_class_without_room_is_dropped_whole_until_there_is_room(self) -> None:
        ones, small, _ = queue(1, 4)
        twos, large, _ = queue(2, request=Request(2000))
        heads = Heads(view_of(), Order(), (ones, twos))
        heads.drop()
        assert heads.first() is large[0]
        large[0].ticket = 0
        heads.advance()
        assert heads.first() is None
        assert heads.dropped == {ones: small[0]}
        heads.restore(ones)
        assert heads.first() is small[0]
        assert heads.dropped == {}

    def test_a_class_counts_once_under_its_present_first_job(self) -> None:
        ones, small, tickets = queue(4, 6)
        twos, large, _ = queue(5, request=Request(2000))
        heads = Heads(view_of(), Order(), (ones, twos))
        back = JobState(Job("back", 9, 0, REQUEST), 0)
        tickets.add(ones, back, 1)
        heads.add(ones)
        heads.add(twos)
        seen = []
        while (job := heads.first()) is not None:
            seen.append(job)
            job.ticket = 0  # type: ignore[attr-defined]
            heads.advance()
        assert seen == [back, small[0], large[0], small[1]]
        assert heads.left() == []

    def test_a_class_whose_first_job_left_goes_on_with_the_next(self) -> None:
        ones, small, _ = queue(1, 7)
        twos, large, _ = queue(5, request=Request(2000))
        heads = Heads(view_of(), Order(), (ones, twos))
        small[0].ticket = 0
        assert heads.first() is large[0]
        assert set(heads.left()) == {ones, twos}

    def test_keys_that_move_are_looked_up_again(self) -> None:
        """An order whose keys depend on what was started meanwhile."""

        class Moving(Order):
            stable = False
            late: set[str] = set()  # noqa: RUF012

            def challenge(self, job: Any, now: int) -> int:
                return int(job.pending_key) + (100 if job.job.id in self.late else 0)

        ones, small, _ = queue(1)
        twos, large, _ = queue(2, request=Request(2000))
        order = Moving()
        heads = Heads(view_of(), order, (ones, twos))
        assert heads.first() is small[0]
        order.late = {"j0"}
        small[0].job = Job("j0", 0, 0, REQUEST)
        large[0].job = Job("other", 1, 0, REQUEST)
        assert heads.first() is large[0], "a key that grew"
        order.late = {"other"}
        heads.rank()
        assert heads.first() is small[0], "a key that fell"


class TestMerged:
    def test_reads_all_in_order_and_takes_nothing(self) -> None:
        ones, small, _ = queue(1, 4, 6)
        twos, large, _ = queue(2, 3, request=Request(2000))
        merged = Merged(view_of(ones, twos), Order())
        seen = []
        while merged.key is not None:
            assert merged.key == merged.job.pending_key
            seen.append(merged.job)
            merged.advance()
        assert seen == [small[0], large[0], large[1], small[1], small[2]]
        assert names(ones) == ["j0", "j1", "j2"]

    def test_a_class_can_be_left_out(self) -> None:
        ones, small, _ = queue(1, 4)
        twos, large, _ = queue(2, request=Request(2000))
        merged = Merged(view_of(ones, twos), Order())
        merged.drop()
        assert merged.job is large[0]
        merged.advance()
        assert merged.key is None
        assert small[0].ticket

    def test_equal_challenges_in_order_of_their_queue(self) -> None:
        class Level(Order):
            def challenge(self, job: Any, now: int) -> int:
                return 7

        ones, small, _ = queue(5)
        twos, large, _ = queue(2, request=Request(2000))
        assert Merged(view_of(ones, twos), Level()).job is large[0]
        assert small[0].pending_key == 5

    def test_knows_who_is_relaxed(self) -> None:
        relaxed = PendingJobs(REQUEST, "", True)
        job = JobState(Job("r", 0, 0, REQUEST), 0)
        Tickets().add(relaxed, job, 1)
        strict, _, _ = queue(2)
        merged = Merged(view_of(strict, relaxed), Order())
        assert merged.relaxed
        merged.advance()
        assert not merged.relaxed


def test_running_jobs_in_order_of_who_gives_way_last() -> None:
    order = RunningOrder()
    jobs = [JobState(Job(f"j{row}", row, 0, REQUEST), 0) for row in range(3)]
    for job, key in zip(jobs, (5, 9, 1), strict=True):
        job.running_key = key
        order.add(job)
    assert names(job for _, job in order.entries) == ["j2", "j0", "j1"]
    order.remove(jobs[0])
    order.remove(jobs[0])
    stranger = JobState(Job("x", 9, 0, REQUEST), 0)
    stranger.running_key = 9
    order.remove(stranger)
    assert names(job for _, job in order.entries) == ["j2", "j1"]
