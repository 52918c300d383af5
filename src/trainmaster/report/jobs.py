"""jobs.csv as columns, one `Jobs` for each run.

Hundreds of thousands of rows pass here, so they are turned into columns a chunk at a
time; a faulty chunk is searched cell by cell only to name the cell.
"""

from __future__ import annotations

import csv
import itertools
import operator
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from trainmaster.model.errors import InputError

if TYPE_CHECKING:
    from .records import Run
    from .series import RunKey

NUMBERS = ("num_gpus", "jct_s", "wait_s")
REQUIRED = ("policy", "job_id", "tenant", *NUMBERS)
CHUNK = 1024

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs of one run, in the order of the file.

    `tenant[i]` is an index into `tenants`, `user[i]` into `users`; the only user may be "".
    `jct_s` and `wait_s` (seconds) are NaN for a job that did not finish.
    """

    ids: tuple[str, ...]
    tenants: tuple[str, ...]
    tenant: Ints
    users: tuple[str, ...]
    user: Ints
    num_gpus: Floats
    jct_s: Floats
    wait_s: Floats

    def rows_of(self, ids: Sequence[str]) -> Ints:
        """The row of each job; -1 where it is missing."""
        row = {job_id: index for index, job_id in enumerate(self.ids)}
        return np.array([row.get(job_id, -1) for job_id in ids], dtype=np.int64)


def read_jobs(path: Path, runs: Sequence[Run], mend: str) -> dict[RunKey, Jobs]:
    """Read jobs.csv and hand each run its rows.

    Raises:
        InputError: the file is missing, unreadable, lacks a column, holds a policy that
            no run has, or no row for a run that counts jobs.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return _split(path, csv.reader(file, strict=True), runs, mend)
    except FileNotFoundError as error:
        raise InputError("is missing", file=path, mend=mend) from error
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path, mend=mend) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"is not CSV: {error}", file=path, mend=mend) from error


def _split(path: Path, lines: Iterator[list[str]], runs: Sequence[Run], mend: str) -> dict[RunKey, Jobs]:
    header = next(lines, [])
    for column in REQUIRED:
        if column not in header:
            raise InputError("is missing", file=path, column=column, mend=mend)
    labels = [column for column in ("policy", "nodes", "seed") if column in header]
    label_codes: dict[tuple[str, ...], int] = {}
    tenant_codes: dict[str, int] = {}
    user_codes: dict[str, int] = {}
    users = ["user"] if "user" in header else []
    ids: list[str] = []
    label, tenant, user = ([np.empty(0, np.int64)] for _ in range(3))
    numbers = {name: [np.empty(0)] for name in NUMBERS}
    for columns in _chunks(path, header, [*labels, *REQUIRED[1:], *users], lines):
        for name in NUMBERS:
            numbers[name].append(_numbers(path, name, columns[name], row=2 + len(ids)))
        ids.extend(columns["job_id"])
        label.append(_codes(zip(*(columns[name] for name in labels), strict=True), label_codes))
        tenant.append(_codes(columns["tenant"], tenant_codes))
        user.append(_codes(columns["user"] if users else [""] * len(columns["tenant"]), user_codes))
    owner = _owners(path, runs, labels, list(label_codes), np.concatenate(label), ids, mend)
    table = {name: np.concatenate(parts) for name, parts in numbers.items()}
    tenant_of_row, user_of_row = np.concatenate(tenant), np.concatenate(user)
    result = {}
    for index, run in enumerate(runs):
        rows = np.flatnonzero(owner == index)
        if rows.size == 0 and run["jobs"]:
            raise InputError(f"has no row of policy {run.policy!r}", file=path, mend=mend)
        result[run.key] = Jobs(
            ids=tuple(ids[row] for row in rows.tolist()),
            tenants=tuple(tenant_codes),
            tenant=tenant_of_row[rows],
            users=tuple(user_codes),
            user=user_of_row[rows],
            **{name: table[name][rows] for name in NUMBERS},
        )
    return result


def _chunks(
    path: Path, header: list[str], wanted: list[str], lines: Iterator[list[str]]
) -> Iterator[dict[str, tuple[str, ...]]]:
    pick = operator.itemgetter(*(header.index(column) for column in wanted))
    first = 2
    while rows := list(itertools.islice(lines, CHUNK)):
        for offset, row in enumerate(rows):
            if len(row) != len(header):
                raise InputError(
                    f"has {len(row)} fields, the header names {len(header)}",
                    file=path,
                    row=first + offset,
                    mend="the file is damaged or cut off; make it again",
                )
        yield dict(zip(wanted, zip(*map(pick, rows), strict=True), strict=True))
        first += len(rows)


def _codes(values: Iterable[Label], codes: dict[Label, int]) -> Ints:
    """Each value as a small number; the dictionary learns new ones."""
    return np.array([codes.setdefault(value, len(codes)) for value in values], dtype=np.int64)


def _numbers(path: Path, column: str, cells: Sequence[str], row: int) -> Floats:
    """Cells as floats; an empty one is NaN. `row` is the line of the first cell."""
    try:
        values = np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        offset = next(index for index, cell in enumerate(cells) if cell and not _is_number(cell))
        raise InputError(
            f"{cells[offset]!r} is not a number", file=path, row=row + offset, column=column
        ) from None
    for offset in np.flatnonzero(~np.isfinite(values)).tolist():
        if cells[offset]:
            raise InputError(f"{cells[offset]!r} is not finite", file=path, row=row + offset, column=column)
    return values


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _owners(
    path: Path,
    runs: Sequence[Run],
    labels: Sequence[str],
    seen: Sequence[tuple[str, ...]],
    label: Ints,
    ids: Sequence[str],
    mend: str,
) -> Ints:
    """For each row the index of the run that it belongs to."""
    known: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        full = {"policy": run.policy, "nodes": str(run.nodes), "seed": str(run.seed)}
        known[tuple(full[name] for name in labels)].append(index)
    for entry in seen:
        if entry not in known:
            what = ", ".join(f"{name} {value!r}" for name, value in zip(labels, entry, strict=True))
            raise InputError(f"has rows of {what}, summary.json has no such run", file=path, mend=mend)
    if all(len(known[entry]) == 1 for entry in seen):
        return np.array([known[entry][0] for entry in seen], dtype=np.int64)[label]
    times: Counter[tuple[int, str]] = Counter()
    owner = []
    for code, job_id in zip(label.tolist(), ids, strict=True):
        candidates = known[seen[code]]
        if times[code, job_id] == len(candidates):
            raise InputError(
                f"holds job {job_id!r} more often than summary.json has runs of {seen[code][0]!r}",
                file=path,
                mend=mend,
            )
        owner.append(candidates[times[code, job_id]])
        times[code, job_id] += 1
    return np.array(owner, dtype=np.int64)
