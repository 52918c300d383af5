"""What a trace reader is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple

from trainmaster.model.job import Job
from trainmaster.traces.problems import Problems
from trainmaster.traces.source import Source
from trainmaster.traces.trace import Truth


class Columns(NamedTuple):
    """Names of the four columns that every format has, for messages."""

    job_id: str = "job id"
    submit: str = "submit time"
    duration: str = "duration"
    gpus: str = "number of GPUs"


class Reader(ABC):
    """One format of job log. One file holds one reader; `testing.readers.ReaderContract` proves it.

    `read` is a generator. It yields the job and the truth of each row in file order,
    with the row's number as the job's `sequence` (loading sorts and renumbers), sets
    ``problems.rows`` to the number of rows that describe a job, and calls
    ``problems.drop`` for each of these that it can't use. What doesn't depend on the format
    the loader finds, for all readers alike: zero GPUs, a duration that is missing (None,
    for a job without a model) or not positive, an id seen before, control characters in a name.
    """

    name: ClassVar[str]
    """The word for ``--format``."""
    citation: ClassVar[str]
    """Where the format is published, in one line."""
    wall_clock: ClassVar[bool] = False
    """True when `submit` counts from 1970: the loader then moves the first job to time 0."""
    directory: ClassVar[bool] = False
    """True when a trace of this format may be a folder."""
    columns: Columns = Columns()
    """What the format, or the file at hand, calls the columns that the loader may find at fault."""

    @abstractmethod
    def detect(self, head: str, path: Path) -> bool:
        """Whether this is the format, from the first characters of the file (its listing, for a folder)."""

    @abstractmethod
    def read(self, source: Source, problems: Problems) -> Iterator[tuple[Job, Truth]]:
        """Yield the usable rows; raise `InputError` when the file as a whole is at fault."""
