"""The ledger, event by event: what was run, held, lost and stopped."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from trainmaster.metrics import Ledger
from trainmaster.model.action import Action, Kill, Start, Stop, Wake
from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.event import (
    Cancelled,
    CheckpointWritten,
    Event,
    Failed,
    Finished,
    Lost,
    NodeDown,
    Started,
    Stopped,
    Submitted,
)
from trainmaster.model.job import Job, Request

GPU0 = Allocation.of([Share(0, 1, 1000)])


def ledger_of(*instants: tuple[int, Sequence[Event], Sequence[Action]], close: int | None = None) -> Ledger:
    """A ledger of job "a" (and "b"), told these instants."""
    ledger = Ledger()
    for now, events, actions in instants:
        ledger.record(now, events, actions)
    if close is not None:
        ledger.close(close)
    return ledger


def submitted(name: str = "a", row: int = 0) -> Submitted:
    return Submitted(Job(name, row, 0, Request(1000)))


def holds(ledger: Ledger) -> list[tuple[int, int, int, int]]:
    """(asked, began, ended, left) of all holds."""
    columns = (ledger.hold_asked, ledger.hold_began, ledger.hold_ended, ledger.hold_left)
    return list(zip(*columns, strict=True))


START, STOP, KILL = Start("a", GPU0), Stop("a"), Kill("a")


def test_a_job_from_end_to_end() -> None:
    """Asked at 5, running from 15, stopped at 40 (given back at 46), again from 50 + 24 to 100."""
    ledger = ledger_of(
        (0, [submitted()], []),
        (5, [], [START]),
        (15, [Started("a")], []),
        (40, [], [STOP, Wake(99, None, 1)]),
        (46, [CheckpointWritten("a", 25), Stopped("a")], []),
        (50, [], [START]),
        (74, [Started("a")], []),
        (100, [Finished("a")], []),
    )
    assert (ledger.first_start[0], ledger.finish[0], ledger.run[0], ledger.lost[0]) == (5, 100, 51, 0)
    assert (ledger.preemptions[0], ledger.status, ledger.ended) == (1, ["finished"], 1)
    assert holds(ledger) == [(5, 15, 40, 46), (50, 74, 100, 100)]
    assert ledger.hold_allocation == [GPU0, GPU0]


def test_starting_and_ending_at_one_instant() -> None:
    ledger = ledger_of((0, [submitted()], [START]), (0, [Started("a")], []), (9, [Finished("a")], []))
    assert (holds(ledger), ledger.run[0]) == ([(0, 0, 9, 9)], 9)


def test_a_failure_of_its_own_ends_a_job() -> None:
    ledger = ledger_of((0, [submitted()], [START]), (2, [Started("a")], []), (9, [Failed("a", "oom")], []))
    assert (ledger.status, ledger.finish[0], ledger.run[0]) == (["failed"], 9, 7)


class TestLostWork:
    def test_counts_what_was_not_saved(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (100, [NodeDown(0), Lost("a", 60)], []),
            (120, [], [START]),
            (130, [Started("a")], []),
            (170, [Finished("a")], []),
        )
        assert (ledger.run[0], ledger.lost[0], ledger.preemptions[0]) == (140, 40, 0)
        assert holds(ledger) == [(0, 0, 100, 100), (120, 130, 170, 170)]

    def test_of_several_failures_adds_up(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (50, [Lost("a", 30)], [START]),
            (50, [Started("a")], []),
            (90, [Lost("a", 30)], [START]),
            (90, [Started("a")], []),
            (160, [Finished("a")], []),
        )
        assert (ledger.run[0], ledger.lost[0]) == (160, 20 + 40)

    def test_is_nothing_while_the_job_was_starting(self) -> None:
        ledger = ledger_of((0, [submitted()], [START]), (20, [Lost("a", 0)], []), close=30)
        assert (ledger.run[0], ledger.lost[0], holds(ledger)) == (0, 0, [(0, 20, 20, 20)])

    def test_of_a_job_that_was_saving_is_what_came_after_the_last_save(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (50, [], [STOP]),
            (53, [Lost("a", 40)], []),
            close=60,
        )
        assert (ledger.run[0], ledger.lost[0], holds(ledger)) == (50, 10, [(0, 0, 50, 53)])

    def test_is_counted_in_time_at_the_speed_it_was_done(self) -> None:
        """At half speed 100 s make 50 s of work, of which 40 s are saved: 20 s of running lost."""
        ledger = Ledger(lambda job, allocation: 0.5)
        ledger.record(0, [submitted()], [START])
        ledger.record(0, [Started("a")], [])
        ledger.record(100, [Lost("a", 40)], [])
        ledger.close(100)
        assert (ledger.run[0], ledger.lost[0]) == (100, 20)


class TestCancelling:
    def test_a_waiting_job(self) -> None:
        ledger = ledger_of((0, [submitted()], []), (7, [Cancelled("a")], []))
        assert (ledger.status, ledger.finish[0], ledger.first_start[0]) == (["cancelled"], 7, -1)

    @pytest.mark.parametrize("end", [Stopped("a"), Lost("a", 3)])
    def test_a_running_job_ends_when_its_gpus_are_back(self, end: Event) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (7, [Cancelled("a")], [KILL]),
            (9, [end], []),
        )
        assert (ledger.status, ledger.finish[0], ledger.run[0], ledger.ended) == (["cancelled"], 9, 7, 1)
        assert holds(ledger) == [(0, 0, 7, 9)]

    def test_a_starting_job_whose_start_comes_too_late(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (7, [Cancelled("a")], [KILL]),
            (8, [Started("a")], []),
            (9, [Stopped("a")], []),
        )
        assert (ledger.run[0], holds(ledger)) == (0, [(0, 7, 7, 9)])

    def test_a_stopping_job_ran_until_it_was_asked_to_stop(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (5, [], [STOP]),
            (7, [Cancelled("a")], [KILL]),
            (9, [Stopped("a")], []),
        )
        assert (ledger.run[0], holds(ledger), ledger.preemptions[0]) == (5, [(0, 0, 5, 9)], 1)

    def test_a_job_that_finishes_before_it_is_killed_has_finished(self) -> None:
        ledger = ledger_of(
            (0, [submitted()], [START]),
            (0, [Started("a")], []),
            (7, [Cancelled("a")], [KILL]),
            (8, [Finished("a")], []),
        )
        assert ledger.status == ["finished"]


def test_jobs_still_there_at_the_end_are_unfinished() -> None:
    ledger = ledger_of(
        (0, [submitted("a", 0), submitted("b", 1)], [START]), (4, [Started("a")], []), close=10
    )
    assert ledger.status == ["unfinished", "unfinished"]
    assert (list(ledger.finish), list(ledger.run), holds(ledger)) == ([-1, -1], [6, 0], [(0, 4, 10, 10)])
