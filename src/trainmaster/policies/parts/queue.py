"""The pending jobs of one decision, merged from the heads of their classes.

Only heads are looked at. When a job can't be placed its whole class is dropped: the
others of the class ask for the same and can't be placed either.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush, heapreplace

from trainmaster.model.ports import ClusterView, JobView, Ordering, PendingClass


class Heads:
    """Heads of pending classes, first to last.

    Args:
        view, ordering: of this decision.
        classes: that take part; `add` adds others later on.

    Attributes:
        dropped: classes that found no room, with their first jobs.

    >>> # heads = Heads(view, ordering, view.pending_classes)
    >>> # while (job := heads.first()) is not None:
    >>> #     ... either view.start(job, ...) and heads.advance(), or heads.drop()
    """

    def __init__(self, view: ClusterView, ordering: Ordering, classes: Iterable[PendingClass] = ()) -> None:
        self._view = view
        # The order of an unstable ordering can change with every step of the decision.
        self._ordering = None if ordering.stable else ordering
        self.dropped: dict[PendingClass, JobView] = {}
        self._heap: list[tuple[int, int, PendingClass]] = []
        self._keys: dict[PendingClass, int] = {}
        self._count = 0
        for members in classes:
            self.add(members)

    def add(self, members: PendingClass) -> None:
        """A class takes part from now on, or may have a new first job."""
        job = members.head()
        if job is None:
            return
        key = self._key(job)
        if self._keys.get(members) != key:
            # An older entry of the class no longer counts.
            self._keys[members] = key
            self._count += 1
            heappush(self._heap, (key, self._count, members))

    @property
    def members(self) -> PendingClass:
        """The class of the first job."""
        return self._heap[0][2]

    def first(self) -> JobView | None:
        """The first job, or None when all classes are empty or dropped."""
        heap, keys = self._heap, self._keys
        while heap:
            key, number, members = heap[0]
            if keys.get(members) != key:
                heappop(heap)
                continue
            job = members.head()
            if job is None:
                heappop(heap)
                del keys[members]
                continue
            current = self._key(job)
            if current == key:
                return job
            keys[members] = current
            heapreplace(heap, (current, number, members))
        return None

    def advance(self) -> None:
        """The first job was started; its class goes on with the next."""
        _, number, members = self._heap[0]
        job = members.head()
        if job is None:
            heappop(self._heap)
            del self._keys[members]
        else:
            key = self._keys[members] = self._key(job)
            heapreplace(self._heap, (key, number, members))

    def drop(self) -> None:
        """The first job can't be placed: nor can its class."""
        members = heappop(self._heap)[2]
        del self._keys[members]
        job = members.head()
        if job is not None:
            self.dropped[members] = job

    def rank(self) -> None:
        """Work out all keys anew: they can also become smaller, when running jobs are stopped."""
        classes = list(self._keys)
        self._heap.clear()
        self._keys.clear()
        for members in classes:
            self.add(members)

    def restore(self, members: PendingClass) -> None:
        """A dropped class counts again."""
        del self.dropped[members]
        self.add(members)

    def left(self) -> list[PendingClass]:
        """Classes that were not dropped and may still have jobs."""
        return list(self._keys)

    def _key(self, job: JobView) -> int:
        if self._ordering is None:
            return job.pending_key
        return self._ordering.challenge(job, self._view.now)


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
