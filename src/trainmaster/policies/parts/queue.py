"""The pending jobs of one decision, merged from the heads of their classes.

Only heads are looked at. When a job can't be placed its whole class is dropped: the
others of the class ask for the same and can't be placed either.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace

from trainmaster.model.ports import ClusterView, JobView, Ordering, PendingClass


class Heads:
    """Heads of the pending classes, first to last.

    Args:
        view, ordering: of this decision.
        blocked: classes that are known to find no room, with their first jobs; they count
            as dropped.

    Attributes:
        dropped: classes that found no room, with their first jobs.

    >>> # heads = Heads(view, ordering)
    >>> # while (job := heads.first()) is not None:
    >>> #     ... either view.start(job, ...) and heads.advance(), or heads.drop()
    """

    def __init__(
        self, view: ClusterView, ordering: Ordering, blocked: Mapping[PendingClass, JobView] | None = None
    ) -> None:
        self._view = view
        # The order of an unstable ordering can change with every step of the decision.
        self._ordering = None if ordering.stable else ordering
        self.dropped: dict[PendingClass, JobView] = dict(blocked or ())
        self._heap: list[tuple[int, int, PendingClass]] = []
        self._count = 0
        for members in view.pending_classes:
            if members not in self.dropped:
                self._add(members)
        heapify(self._heap)

    @property
    def members(self) -> PendingClass:
        """The class of the first job."""
        return self._heap[0][2]

    def first(self) -> JobView | None:
        """The first job, or None when all classes are empty or dropped."""
        heap = self._heap
        while heap:
            key, number, members = heap[0]
            job = members.head()
            if job is None:
                heappop(heap)
                continue
            current = self._key(job)
            if current == key:
                return job
            heapreplace(heap, (current, number, members))
        return None

    def advance(self) -> None:
        """The first job was started; its class goes on with the next."""
        _, number, members = self._heap[0]
        job = members.head()
        if job is None:
            heappop(self._heap)
        else:
            heapreplace(self._heap, (self._key(job), number, members))

    def drop(self) -> None:
        """The first job can't be placed: nor can its class."""
        members = heappop(self._heap)[2]
        job = members.head()
        if job is not None:
            self.dropped[members] = job

    def rank(self) -> None:
        """Work out all keys anew: they can also become smaller, when running jobs are stopped."""
        heads = [(number, members, members.head()) for _, number, members in self._heap]
        self._heap = [(self._key(job), number, members) for number, members, job in heads if job is not None]
        heapify(self._heap)

    def restore(self) -> None:
        """GPUs have become free beyond what was needed: dropped classes count again."""
        for members in self.dropped:
            self._add(members)
        heapify(self._heap)
        self.dropped.clear()

    def _key(self, job: JobView) -> int:
        if self._ordering is None:
            return job.pending_key
        return self._ordering.challenge(job, self._view.now)

    def _add(self, members: PendingClass) -> None:
        job = members.head()
        if job is not None:
            self._heap.append((self._key(job), self._count, members))
            self._count += 1


class Merged:
    """All pending jobs in order of `challenge`, then of pending key, read without taking any step."""

    def __init__(self, view: ClusterView, ordering: Ordering) -> None:
        self._now, self._challenge = view.now, ordering.challenge
        self._heap: list[tuple[int, int, int, JobView]] = []
        self._rest = []
        self._classes = list(view.pending_classes)
        for number, members in enumerate(self._classes):
            jobs = iter(members)
            self._rest.append(jobs)
            self._push(number)
        self.key: int | None = self._heap[0][0] if self._heap else None

    @property
    def job(self) -> JobView:
        """The first job; its key is `key` (None at the end)."""
        return self._heap[0][3]

    @property
    def relaxed(self) -> bool:
        """Whether the first job accepts any nodes."""
        return self._classes[self._heap[0][2]].relaxed

    def advance(self) -> None:
        """On to the next job."""
        _, _, number, _ = heappop(self._heap)
        self._push(number)
        self.key = self._heap[0][0] if self._heap else None

    def drop(self) -> None:
        """Leave out the whole class of the first job."""
        heappop(self._heap)
        self.key = self._heap[0][0] if self._heap else None

    def _push(self, number: int) -> None:
        job = next(self._rest[number], None)
        if job is not None:
            heappush(self._heap, (self._challenge(job, self._now), job.pending_key, number, job))
