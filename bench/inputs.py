"""Traces derived from a real one, kept in .cache/bench under the hash of what they come from."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support import ROOT, MissingDataError

CACHE = ROOT / ".cache" / "bench"
VERSION = 1
"""Part of a derived trace's name; raise it when the derivation changes."""

PRIME = 7_368_787
"""Spreads ids: larger than the number of any trace's rows, and prime, so no two collide."""


@cache
def derived(source: Path, *, copies: int = 1, stretch: float = 1.0, squeeze: int = 1) -> Path:
    """A changed trace, made where it isn't yet; without a change the trace itself.

    Args:
        source: normalized CSV, gzipped.
        copies: so many, one after another in time, with ids of their own in scrambled order.
        stretch: factor on durations.
        squeeze: arrivals so many times as fast.
    """
    if copies == squeeze == 1 and stretch == 1.0:
        return source
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    stem = source.name.removesuffix(".csv.gz")
    path = CACHE / f"{stem}-x{copies}-stretch{stretch:g}-squeeze{squeeze}-{digest}-v{VERSION}.csv.gz"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        with (
            draft.open("wb") as raw,
            gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, filename="", mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="utf-8", newline="") as text,
        ):
            csv.writer(text, lineterminator="\n").writerows(_rows(source, copies, stretch, squeeze))
        draft.replace(path)
    return path


def _rows(source: Path, copies: int, stretch: float, squeeze: int) -> Iterator[list[str]]:
    header, count, span_s = _shape(source)
    job_id, submit, duration = (header.index(name) for name in ("job_id", "submit_s", "duration_s"))
    yield header
    number = 0
    for copy in range(copies):
        for row in _read(source):
            if copies > 1:
                row[job_id] = str(number * PRIME % (count * copies))
            row[submit] = repr((float(row[submit]) + copy * span_s) / squeeze)
            row[duration] = repr(float(row[duration]) * stretch)
            number += 1
            yield row


def _shape(source: Path) -> tuple[list[str], int, float]:
    """Header, number of rows, and seconds from the first submission to just after the last."""
    with gzip.open(source, "rt", newline="") as file:
        header = next(csv.reader(file))
    submit = header.index("submit_s")
    count, last = 0, 0.0
    for row in _read(source):
        count, last = count + 1, max(last, float(row[submit]))
    if not count:
        raise MissingDataError(f"{source.name} holds no jobs")
    return header, count, last + 1.0


def _read(source: Path) -> Iterator[list[str]]:
    with gzip.open(source, "rt", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        yield from rows
