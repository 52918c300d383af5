"""The simulated clock: events that will happen, in order of (time, rank, sequence).

Each simulator has its own, sequence numbers included: two in one process never
influence each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from trainmaster.model.event import Event
from trainmaster.model.job import Job


class Ticket:
    """Lets an event that was announced be called off."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


ALWAYS = Ticket()
"""The ticket of events that are never called off."""


class Clock:
    """Future events in a heap, and the arrivals of a sorted list of jobs."""

    __slots__ = ("_arrivals", "_called_off", "_heap", "_next", "_sequence")

    def __init__(self, arrivals: list[Job]) -> None:
        self._arrivals = arrivals
        self._next = 0
        self._heap: list[tuple[int, int, int, Event, Ticket]] = []
        self._sequence = 0
        self._called_off = 0

    def announce(self, at: int, event: Event, ticket: Ticket = ALWAYS) -> None:
        """`event` will happen at `at`, unless its ticket is cancelled by then."""
        self._sequence += 1
        heappush(self._heap, (at, event.rank, self._sequence, event, ticket))

    def call_off(self, ticket: Ticket) -> None:
        """What was announced with this ticket will not happen.

        The end of a job that is stopped again and again would otherwise be kept a hundred
        times, until the time for which it was announced.
        """
        ticket.cancelled = True
        self._called_off += 1
        if self._called_off > 1_000 and 2 * self._called_off > len(self._heap):
            self._heap[:] = [entry for entry in self._heap if not entry[4].cancelled]
            heapify(self._heap)
            self._called_off = 0

    def next_instant(self) -> int | None:
        """When something happens next; None = never."""
        heap = self._heap
        while heap and heap[0][4].cancelled:
            heappop(heap)
        arrival = self._arrivals[self._next].submit if self._next < len(self._arrivals) else None
        if not heap:
            return arrival
        at = heap[0][0]
        return at if arrival is None or at < arrival else arrival

    def due(self, now: int) -> Iterator[Event]:
        """Take out the announced events of instant `now`, those announced meanwhile included."""
        heap = self._heap
        while heap and heap[0][0] == now:
            _, _, _, event, ticket = heappop(heap)
            if not ticket.cancelled:
                yield event

    def arrivals(self, now: int) -> list[Job]:
        """Take out the jobs that are submitted at `now`."""
        jobs = self._arrivals
        first = last = self._next
        while last < len(jobs) and jobs[last].submit == now:
            last += 1
        self._next = last
        return jobs[first:last]

    def announced(self) -> list[tuple[int, Event, Ticket]]:
        """What was announced and not called off, in the order in which that was done."""
        entries = sorted((entry for entry in self._heap if not entry[4].cancelled), key=_sequence)
        return [(at, event, ticket) for at, _, _, event, ticket in entries]

    @property
    def arrivals_left(self) -> int:
        """Jobs not yet submitted."""
        return len(self._arrivals) - self._next


def _sequence(entry: tuple[int, int, int, Event, Ticket]) -> int:
    return entry[2]
