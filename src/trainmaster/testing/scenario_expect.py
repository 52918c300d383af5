"""What a case expects, compared with what happened: one line for each difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from trainmaster.model.units import to_gpus, to_seconds
from trainmaster.testing.scenario_features import reasons
from trainmaster.testing.scenario_keys import STATE_LISTS
from trainmaster.testing.scenario_model import ENDED, PARTLY, Bound, Moment, Scene
from trainmaster.testing.scenario_play import Play

SHOWN: Final = 5
"""Names that a message lists at most."""


class Checker:
    """Compares a part of a case with what its play does.

    Attributes:
        differences: so far, in order of time.
    """

    def __init__(self, play: Play) -> None:
        self.differences: list[str] = []
        self._play = play
        self._account = play.account
        self._moments = list(play.scene.moments)
        self._met: set[int] = set()

    def settled(self, now: int, following: int | None) -> None:
        """All of instant `now` has happened; nothing more does before `following` (None = ever)."""
        for situation in self._play.scene.never if now >= 0 else ():
            pairs = situation.states
            if situation.line not in self._met and all(self._account.is_in(*pair) for pair in pairs):
                self._met.add(situation.line)
                words = " while ".join(f"{job} is {word}" for job, word in pairs)
                self.differences.append(f"at {_time(now)}: {words}, which must never be")
        while self._moments and (at := self._moments[0].at) is not None:
            if following is not None and at >= following:
                return
            self._check(self._moments.pop(0))

    def ended(self) -> None:
        """The play is over."""
        for moment in self._moments:
            self._check(moment)
        self._moments = []
        self._check_ends()

    # -- one moment -------------------------------------------------------------------------------

    def _check(self, moment: Moment) -> None:
        where = "at the end" if moment.at is None else f"at {_time(moment.at)}"
        for key, expected in moment.checks.items():
            for difference in self._differences(key, expected):
                self.differences.append(f"{where} (line {moment.line}): {difference}")

    def _differences(self, key: str, expected: Any) -> Iterator[str]:
        if key in _STATE_WORDS:
            yield from self._states(key, expected)
        else:
            yield from _CHECKS[key](self, expected)

    def _states(self, word: str, jobs: Sequence[str]) -> Iterator[str]:
        state = self._account.state
        wrong = [job for job in jobs if not self._account.is_in(job, word)]
        for job in wrong[:SHOWN]:
            held = f" with {to_gpus(self._account.gpus(job))} GPUs" if word == PARTLY else ""
            yield f"{job} is {state[job]}{held}, expected {word}"
        if wrong[SHOWN:]:
            yield f"{len(wrong) - SHOWN} more of {len(jobs)} jobs aren't {word}"

    def _nodes(self, expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
        for job, nodes in expected.items():
            if self._account.nodes(job) != set(nodes):
                yield f"{job} sits on {self._where(job)}, expected {_list(sorted(nodes))}"

    def _together(self, jobs: Sequence[str]) -> Iterator[str]:
        first = self._account.nodes(jobs[0])
        for job in jobs:
            if not first or self._account.nodes(job) != first:
                yield f"{job} sits on {self._where(job)}, {jobs[0]} on {self._where(jobs[0])}"

    def _apart(self, jobs: Sequence[str]) -> Iterator[str]:
        for row, job in enumerate(jobs):
            if not self._account.nodes(job):
                yield f"{job} sits on {self._where(job)}"
            for other in jobs[:row]:
                common = self._account.nodes(job) & self._account.nodes(other)
                if common:
                    yield f"{job} and {other} are both on {_list(sorted(common))}"

    def _gpus(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        for job, bound in expected.items():
            yield from compare(f"{job} holds", self._account.gpus(job), bound, _gpu_words)

    def _free(self, expected: Bound | Mapping[str, Bound]) -> Iterator[str]:
        if isinstance(expected, Bound):
            yield from compare("free are", self._account.free(), expected, _gpu_words)
            return
        for node, bound in expected.items():
            yield from compare(f"free on {node} are", self._account.free(node), bound, _gpu_words)

    def _allocated(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        for queue, bound in expected.items():
            held = sum(self._account.gpus(job.name) for job in self._play.scene.jobs if job.queue == queue)
            yield from compare(f"queue {queue} holds", held, bound, _gpu_words)

    def _count(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        for word, bound in expected.items():
            found = self._account.count(list(self._account.state), word)
            yield from compare(f"jobs {word}:", found, bound, str)

    def _evictions(self, expected: Bound | Mapping[str, Bound]) -> Iterator[str]:
        counts = self._account.evictions
        if isinstance(expected, Bound):
            who = [job for job, count in counts.items() if count]
            tail = f" ({_list(who)})" if who else ""
            for difference in compare("evictions:", sum(counts.values()), expected, str):
                yield difference + tail
            return
        for job, count in counts.items():
            yield from compare(f"evictions of {job}:", count, expected.get(job, Bound(0)), str)

    def _start(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        yield from self._times("started", self._account.first_start, expected)

    def _finish(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        yield from self._times("ended", self._account.ended_at, expected)

    def _jct(self, expected: Mapping[str, Bound]) -> Iterator[str]:
        submitted = {job.name: job.at for job in self._play.scene.jobs}
        taken = {job: at - submitted[job] for job, at in self._account.ended_at.items()}
        for job, bound in expected.items():
            if job not in taken:
                yield f"{job} never ended, expected a JCT of {bound.words}{_time(bound.value)}"
            else:
                yield from compare(f"the JCT of {job} is", taken[job], bound, _time)

    def _makespan(self, bound: Bound) -> Iterator[str]:
        yield from compare("makespan:", max(self._account.ended_at.values(), default=0), bound, _time)

    def _times(self, verb: str, found: Mapping[str, int], expected: Mapping[str, Bound]) -> Iterator[str]:
        for job, bound in expected.items():
            if job not in found:
                yield f"{job} never {verb}, expected {bound.words}{_time(bound.value)}"
            else:
                yield from compare(f"{job} {verb} at", found[job], bound, _time)

    def _starts(self, jobs: Sequence[str]) -> Iterator[str]:
        found = [job for job in self._account.starts if job in jobs]
        if found != list(jobs):
            yield f"started in the order {_list(found)}, expected {_list(jobs)}"

    def _evicted(self, jobs: Sequence[str]) -> Iterator[str]:
        if self._account.evicted != list(jobs):
            yield f"evicted in the order {_list(self._account.evicted)}, expected {_list(jobs)}"

    def _evicted_queues(self, queues: Sequence[str]) -> Iterator[str]:
        queue_of = {job.name: job.queue for job in self._play.scene.jobs}
        found = [queue_of[job] for job in self._account.evicted]
        if found != list(queues):
            yield f"evicted from the queues {_list(found)}, expected {_list(queues)}"

    def _reason(self, expected: Mapping[str, Sequence[str]]) -> Iterator[str]:
        known = reasons(self._play.engine)
        for job, words in expected.items():
            if job not in known:
                yield f"{job} is {self._account.state[job]}, so there is no reason why it waits"
                continue
            found = known[job].sentence
            for word in words:
                if word not in found:
                    yield f"the reason of {job} is {found!r}, expected {word!r} in it"

    def _check_ends(self) -> None:
        """Every job has ended, unless the case says otherwise or looks away earlier."""
        scene = self._play.scene
        named = _named_at_end(scene)
        if scene.until is not None:
            return
        late = [job for job, state in self._account.state.items() if state not in ENDED and job not in named]
        if late:
            self.differences.append(f"at the end: {_list(late)} never ended, and nothing more happens")

    def _where(self, job: str) -> str:
        return _list(sorted(self._account.nodes(job))) or f"no node ({self._account.state[job]})"


_STATE_WORDS: Final = {key.name for key in STATE_LISTS}

_CHECKS: Final[dict[str, Callable[[Checker, Any], Iterator[str]]]] = {
    "nodes": Checker._nodes,
    "together": Checker._together,
    "apart": Checker._apart,
    "gpus": Checker._gpus,
    "free": Checker._free,
    "allocated": Checker._allocated,
    "count": Checker._count,
    "evictions": Checker._evictions,
    "start": Checker._start,
    "finish": Checker._finish,
    "jct": Checker._jct,
    "makespan": Checker._makespan,
    "starts": Checker._starts,
    "evicted": Checker._evicted,
    "evicted_queues": Checker._evicted_queues,
    "reason": Checker._reason,
}


def _named_at_end(scene: Scene) -> set[str]:
    """Jobs of which the case says in what state they end."""
    ends = [moment.checks for moment in scene.moments if moment.at is None]
    return {job for checks in ends for key in checks if key in _STATE_WORDS for job in checks[key]}


def compare(what: str, found: int, bound: Bound, words: Callable[[int], str] = str) -> Iterator[str]:
    """A difference, if there is one."""
    if not bound.holds(found):
        yield f"{what} {words(found)}, expected {bound.words}{words(bound.value)}"


def _time(ns: int) -> str:
    return f"{to_seconds(ns):g} s"


def _gpu_words(milli: int) -> str:
    return f"{to_gpus(milli)} GPUs"


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN * 4} more" if len(names) > SHOWN * 4 else ""
    return ", ".join(names[: SHOWN * 4]) + more
