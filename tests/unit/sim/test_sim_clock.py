"""The simulated clock."""

from __future__ import annotations

from trainmaster.model.event import Finished, Started, Submitted, Timer
from trainmaster.model.job import Job, Request
from trainmaster.sim.clock import Clock, Ticket


def test_order_is_time_then_rank_then_sequence() -> None:
    clock = Clock([])
    clock.announce(5, Timer("a", 1))
    clock.announce(5, Started("b"))
    clock.announce(5, Finished("c"))
    clock.announce(5, Finished("d"))
    clock.announce(3, Started("e"))
    assert clock.next_instant() == 3
    assert list(clock.due(3)) == [Started("e")]
    assert list(clock.due(5)) == [Finished("c"), Finished("d"), Started("b"), Timer("a", 1)]
    assert clock.next_instant() is None


def test_arrivals_come_in_order_of_submission() -> None:
    jobs = [Job(str(n), n, at, Request(1000)) for n, at in enumerate((0, 0, 7))]
    clock = Clock(jobs)
    assert clock.next_instant() == 0
    assert clock.arrivals(0) == jobs[:2]
    assert (clock.arrivals_left, clock.next_instant()) == (1, 7)
    assert Submitted.rank > Finished.rank


def test_events_that_are_called_off_neither_happen_nor_pile_up() -> None:
    clock = Clock([])
    clock.announce(10**9, Finished("last"))
    for _ in range(10_000):
        ticket = Ticket()
        clock.announce(10**6, Finished("a"), ticket)
        clock.call_off(ticket)
    assert len(clock._heap) < 3_000
    assert clock.next_instant() == 10**9


def test_calling_off_in_the_middle_of_an_instant() -> None:
    clock = Clock([])
    tickets = [Ticket() for _ in range(4_000)]
    for ticket in tickets:
        clock.announce(1, Started("a"), ticket)
    clock.announce(1, Timer("z", 0))
    seen = []
    for event in clock.due(1):
        seen.append(event)
        for ticket in tickets:
            if not ticket.cancelled:
                clock.call_off(ticket)
    assert seen == [Started("a"), Timer("z", 0)]
