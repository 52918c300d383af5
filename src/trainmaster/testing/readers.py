"""The contract of a trace reader, as tests that you inherit.

::

    from trainmaster.testing.readers import ReaderContract

    class TestMyReader(ReaderContract):
        reader = MyReader
        sample = Sample("log.csv", "id,at,gpus\\n…", rows=3)
        expected = [(Job("a", 0, 0, Request(1000)), Truth(60 * SECOND)), …]

Run it with pytest. Every failure says what the reader did wrong; no other package is needed.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any, ClassVar

from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.testing.trace_samples import Sample
from trainmaster.traces import Reader, Trace, Truth
from trainmaster.traces.loading import read_trace
from trainmaster.traces.problems import Problems
from trainmaster.traces.source import HEAD_CHARS, Source

__all__ = ["ReaderContract", "assert_counts_add_up", "job_values", "mutations"]


class ReaderContract:
    """Inherit, set the class attributes, and pytest runs the contract.

    Args:
        reader: the reader's class.
        sample: a small trace with its files; some rows at fault make it a better one.
        expected: the jobs and truths that it must give, in order of submission, as after
            loading (renumbered, times moved to 0 for a wall-clock format).
        dropped: how many rows must be dropped, by reason.
    """

    reader: ClassVar[type[Reader]]
    sample: ClassVar[Sample]
    expected: ClassVar[Sequence[tuple[Job, Truth]]]
    dropped: ClassVar[dict[str, int]] = {}

    def test_reader_says_what_it_is(self) -> None:
        assert issubclass(self.reader, Reader), "derive the class from trainmaster.traces.Reader"
        name = self.reader.name
        assert name and name == name.lower() and " " not in name, "`name` is one lower-case word"
        assert self.reader.citation.strip(), "`citation` says where the format is published"
        assert "\n" not in self.reader.citation, "`citation` is one line"

    def test_reader_recognizes_its_format(self, tmp_path: Path) -> None:
        path = self.sample.write(tmp_path)
        assert self.reader().detect(self.sample.text[:HEAD_CHARS], path) is True

    def test_reader_refuses_what_is_not_its_format(self, tmp_path: Path) -> None:
        foreign = tmp_path / "foreign.txt"
        for head in ("", "\n", "colour,taste\nred,sweet\n", "{}", "\0\1\2", '"', "[1, 2", "a\tb\n"):
            assert self.reader().detect(head, foreign) is False, f"detect() takes {head!r} for its own"

    def test_reading_is_a_generator(self, tmp_path: Path) -> None:
        found = self.reader().read(Source(self.sample.write(tmp_path)), Problems())
        assert isinstance(found, Iterator), "`read` must yield rows one by one"

    def test_sequence_is_the_row(self, tmp_path: Path) -> None:
        problems = Problems()
        source = Source(self.sample.write(tmp_path))
        rows = [job.sequence for job, _ in self.reader().read(source, problems)]
        assert all(row >= 1 for row in rows), "rows count from 1"
        assert rows == sorted(set(rows)), "rows come in the order of the file"

    def test_known_answer(self, tmp_path: Path) -> None:
        trace = self.load(self.sample.write(tmp_path))
        assert [job_values(job) for job in trace.jobs] == [job_values(job) for job, _ in self.expected]
        assert trace.truths == [truth for _, truth in self.expected]
        assert trace.dropped == dict(sorted(self.dropped.items()))

    def test_every_row_is_a_job_or_counted(self, tmp_path: Path) -> None:
        trace = self.load(self.sample.write(tmp_path))
        assert trace.problems.rows == self.sample.rows, "`problems.rows` counts the rows that describe a job"
        assert_counts_add_up(trace)

    def test_reading_twice_gives_the_same(self, tmp_path: Path) -> None:
        path = self.sample.write(tmp_path)
        first, second = self.load(path), self.load(path)
        assert [job_values(job) for job in first.jobs] == [job_values(job) for job in second.jobs]
        assert first.truths == second.truths
        assert first.problems == second.problems

    def test_one_reader_reads_many_files(self, tmp_path: Path) -> None:
        reader = self.reader()
        path = self.sample.write(tmp_path)
        first, second = read_trace(reader, path), read_trace(reader, path)
        assert [job.id for job in first.jobs] == [job.id for job in second.jobs], (
            "keep no state between files"
        )

    def test_jobs_cannot_be_changed(self, tmp_path: Path) -> None:
        trace = self.load(self.sample.write(tmp_path))
        for thing, name in (
            (trace.jobs[0], "id"),
            (trace.jobs[0].request, "gpus"),
            (trace.truths[0], "duration"),
        ):
            try:
                setattr(thing, name, getattr(thing, name))
            except FrozenInstanceError:
                continue
            raise AssertionError(f"{type(thing).__name__}.{name} can be changed")

    def test_equal_requests_are_one_object(self, tmp_path: Path) -> None:
        requests = [job.request for job in self.load(self.sample.write(tmp_path)).jobs]
        assert len({id(request) for request in requests}) == len(set(requests))

    def test_gzip_reads_the_same(self, tmp_path: Path) -> None:
        path = self.sample.write(tmp_path)
        plain = self.load(path)
        path.write_bytes(gzip.compress(self.sample.text.encode()))
        packed = self.load(path)
        assert [job_values(job) for job in packed.jobs] == [job_values(job) for job in plain.jobs]
        assert packed.truths == plain.truths

    def test_strict_stops_at_the_first_fault(self, tmp_path: Path) -> None:
        path = self.sample.write(tmp_path)
        try:
            trace = read_trace(self.reader(), path, strict=True)
        except InputError as error:
            assert self.dropped, f"no row is at fault, but: {error}"
            assert error.row is not None and error.file is not None, f"no row or file: {error}"
            assert "\n" not in str(error), "one line"
        else:
            assert not self.dropped, "strict reading must raise InputError"
            assert len(trace) == len(self.expected)

    def test_damaged_text_never_breaks_the_reader(self, tmp_path: Path) -> None:
        for damaged in mutations(self.sample.text, seed=0, count=120):
            path = self.sample.write(tmp_path, damaged)
            try:
                trace = self.load(path)
            except InputError as error:
                assert "\n" not in str(error), f"one line, not: {error}"
            else:
                assert_counts_add_up(trace)

    def load(self, path: Path) -> Trace:
        """The sample at `path`, through the loader."""
        return read_trace(self.reader(), path)


def job_values(job: Job) -> dict[str, Any]:
    """The fields of a job, to compare two of them (jobs are compared by identity)."""
    return {item.name: getattr(job, item.name) for item in fields(job)}


def assert_counts_add_up(trace: Trace) -> None:
    """Every row that was read is a job or was dropped for a reason; jobs are sorted and numbered."""
    problems = trace.problems
    assert problems.rows == len(trace) + problems.dropped_rows, (
        f"{problems.rows} rows read, but {len(trace)} jobs and {problems.dropped_rows} dropped"
    )
    assert len(trace.jobs) == len(trace.truths)
    assert [job.sequence for job in trace.jobs] == list(range(len(trace)))
    assert all(
        before.submit <= after.submit for before, after in zip(trace.jobs, trace.jobs[1:], strict=False)
    )
    assert len({job.id for job in trace.jobs}) == len(trace)
    for job, truth in zip(trace.jobs, trace.truths, strict=True):
        assert job.id and job.submit >= 0 and job.request.gpus > 0
        assert truth.duration is None or truth.duration > 0


def mutations(text: str, *, seed: int, count: int) -> Iterator[str]:
    """`count` damaged versions of a text: lines and fields lost, doubled, swapped, replaced, cut.

    >>> len(list(mutations("a,b\\n1,2\\n", seed=0, count=5)))
    5
    """
    generator = random.Random(seed)
    for _ in range(count):
        damaged = text
        for _ in range(generator.randint(1, 3)):
            damaged = generator.choice(_DAMAGES)(damaged, generator)
        yield damaged


_ODD_FIELDS = (
    "",
    "-1",
    "nan",
    "inf",
    "1e400",
    "0",
    "None",
    '"',
    "ä",
    "\0",
    "1-2",
    "9" * 30,
    "2020-01-01 00:00:00Z",
)


def _damage_lines(text: str, generator: random.Random) -> str:
    lines = text.splitlines(keepends=True) or [""]
    at, other = generator.randrange(len(lines)), generator.randrange(len(lines))
    what = generator.randrange(3)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines.insert(at, lines[other])
    else:
        lines[at], lines[other] = lines[other], lines[at]
    return "".join(lines)


def _damage_fields(text: str, generator: random.Random) -> str:
    delimiter = max(",|\t ", key=text.count)
    parts = text.split(delimiter)
    at, other = generator.randrange(len(parts)), generator.randrange(len(parts))
    what = generator.randrange(4)
    if what == 0:
        del parts[at]
    elif what == 1:
        parts.insert(at, parts[other])
    elif what == 2:
        parts[at], parts[other] = parts[other], parts[at]
    else:
        parts[at] = generator.choice(_ODD_FIELDS)
    return delimiter.join(parts)


def _damage_characters(text: str, generator: random.Random) -> str:
    at = generator.randrange(len(text) + 1)
    return text[:at] + generator.choice(_ODD_FIELDS) + text[at + generator.randrange(3) :]


def _cut(text: str, generator: random.Random) -> str:
    return text[: generator.randrange(len(text) + 1)]


_DAMAGES: tuple[Callable[[str, random.Random], str], ...] = (
    _damage_lines,
    _damage_fields,
    _damage_fields,
    _damage_characters,
    _cut,
)
