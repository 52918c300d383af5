"""The normalized trace schema, and how texts become exact numbers.

One row is one job. Seconds may have decimals (kept to the nanosecond); an empty
field means unknown. `COLUMNS` lists every column with its meaning.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from difflib import get_close_matches
from shlex import quote
from typing import Final

from trainmaster.model.job import Deadline, Workload
from trainmaster.model.units import GPU, SECOND
from trainmaster.traces.problems import RowFault

COLUMNS: Final[dict[str, str]] = {
    "job_id": "unique name of the job",
    "submit_s": "instant of submission, seconds on the trace's own clock (0 = first job, as a rule)",
    "duration_s": "run time on the GPUs asked for, seconds; may be absent or empty for jobs with a model",
    "num_gpus": "GPUs of the whole gang; below 1 it is a fraction of one device",
    "tenant": "who is charged: virtual cluster, account, project",
    "user": "who submitted",
    "status": "how the job ended: completed, failed, cancelled, timeout, …",
    "queue_s": "recorded wait, seconds",
    "requested_walltime_s": "run time that the user declared, seconds",
    "priority": "whole number, larger is more urgent",
    "min_gpus": "fewest GPUs an elastic job can run with",
    "max_gpus": "most GPUs an elastic job can use",
    "preemptible": "true or false (default true)",
    "depends_on": "ids of jobs that must finish first, separated by ';'",
    "deadline_s": "finish by this instant, seconds on the same clock as submit_s",
    "deadlines_s": "soft deadlines on the same clock, growing, separated by '-'; used instead of deadline_s",
    "deadline_values": "what meeting each of deadlines_s is worth, not growing, separated by '-'",
    "model": "name of the model, the key into a speed profile",
    "batch_size": "samples per iteration over the whole gang",
    "iterations": "iterations to run",
    "gpu_type": "acceptable GPU types, any of them, separated by '|'",
    "num_nodes": "number of nodes that the user asked for",
    "job_class": "the source's own label: strict, soft, best, …",
    "num_cpus": "CPUs; accepted and not used",
    "synthetic": "1 when the job was generated, not recorded",
}
"""Column of the normalized CSV: its meaning. Any other column is ignored and noted."""

REQUIRED: Final = ("job_id", "submit_s", "num_gpus")
"""Columns that must be there, besides duration_s or model."""

LIMIT_S: Final = 9_000_000_000
"""Largest time in seconds (285 years): its nanoseconds fit in 64 bits."""

LIMIT_GPUS: Final = 1_000_000_000
"""Largest number of GPUs that is taken for one."""


_DELIMITERS: Final = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", " ": "a blank"}


def delimiter_hint(header: str, known: Collection[str] = COLUMNS, wanted: str = ",", least: int = 2) -> str:
    """What to do about a header whose columns have another delimiter than they should.

    Empty unless some delimiter would give at least `least` of the known columns.

    >>> delimiter_hint("job_id;submit_s;num_gpus")
    "columns must be separated by ',', this file uses ';'"
    """
    for delimiter, word in _DELIMITERS.items():
        names = {name.strip().strip('"') for name in header.split(delimiter)}
        if delimiter != wanted and len(names.intersection(known)) >= least:
            return f"columns must be separated by {_DELIMITERS[wanted]}, this file uses {word}"
    return ""


def found_hint(name: str, names: Collection[str], option: str = "") -> str:
    """What to do about a column that isn't among those of a header.

    Args:
        option: how to say which of them it is, up to the name of the column; "" = there is no way.

    >>> found_hint("num_gpus", ["job_id", "n_gpus"])
    "found job_id, n_gpus; did you mean 'n_gpus'?"
    >>> found_hint("num_gpus", ["job_id", "Cards"], "--columns num_gpus=")
    'found job_id, Cards; if it is one of these: --columns num_gpus=NAME'
    """
    found = [other for other in names if other]
    if not found:
        return "give a header line"
    close = next(iter(get_close_matches(name, found, n=1, cutoff=0.6)), "")
    hint = f"found {', '.join(found)}"
    if option:
        which = f"{close!r}: {option}{quote(close)}" if close else f"one of these: {option}NAME"
        return f"{hint}; if it is {which}"
    return f"{hint}; did you mean {close!r}?" if close else hint


_LIMIT_NS: Final = LIMIT_S * SECOND

# Below this a float is so much finer than a nanosecond that a fraction can't vanish in it.
_FINE: Final = 1 << 16


def parse_time(text: str, unit: int = SECOND) -> int:
    """Text of a time in `unit` nanoseconds to nanoseconds, exactly.

    Raises ValueError or OverflowError for what isn't a finite time within `LIMIT_S`.

    >>> parse_time("2240194.0"), parse_time("1700000000.123456789"), parse_time("1e3")
    (2240194000000000, 1700000000123456789, 1000000000000)
    """
    value = float(text)
    whole = int(value)
    if not -_LIMIT_NS <= whole * unit <= _LIMIT_NS:
        raise ValueError(f"{text!r} is beyond {LIMIT_S} seconds")
    if whole == value and (-_FINE < whole < _FINE or "." not in text or text.endswith(".0")):
        return whole * unit
    return int((Decimal(text) * unit).to_integral_value())


def format_seconds(ns: int) -> str:
    """Nanoseconds as the shortest exact decimal text of seconds.

    >>> format_seconds(27_000_000_000), format_seconds(1_500_000_000), format_seconds(-1)
    ('27', '1.5', '-0.000000001')
    """
    whole, rest = divmod(abs(ns), SECOND)
    sign = "-" if ns < 0 else ""
    return f"{sign}{whole}.{rest:09d}".rstrip("0") if rest else f"{sign}{whole}"


def format_gpus(milli: int) -> str:
    """Milli-GPUs as decimal text.

    >>> format_gpus(8000), format_gpus(460)
    ('8', '0.46')
    """
    whole, rest = divmod(milli, GPU)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def format_number(value: float) -> str:
    """A float as text that reads back the same: no needless '.0', never an exponent.

    >>> format_number(10.0), format_number(0.1), format_number(1e-7)
    ('10', '0.1', '0.0000001')
    """
    text = repr(value)
    return format(Decimal(text), "f") if "e" in text else text.removesuffix(".0")


def time_field(text: str, column: str, reason: str, unit: int = SECOND) -> int:
    """Nanoseconds from the text of a time in `unit` nanoseconds; raises `RowFault`."""
    try:
        return parse_time(text, unit)
    except (ValueError, OverflowError):
        what = f"{text!r} is not a finite time" if text.strip() else "is empty"
        mend = "a number, such as 3600 or 0.5"
        if "-" in text[1:] or ":" in text:
            mend = "seconds, such as 3600 or 0.5; for dates, seconds since 1970"
        raise RowFault(reason, what, column=column, mend=mend) from None


def gpus_field(text: str, column: str = "num_gpus", reason: str = "gpus_invalid") -> int:
    """Milli-GPUs from the text of a number of GPUs in `column`; raises `RowFault`."""
    value = number_field(text, column, reason)
    if not 0 <= value <= LIMIT_GPUS:
        raise RowFault(reason, f"{text} GPUs", column=column, mend="a number of GPUs, such as 8 or 0.5")
    return round(value * GPU)


def number_field(text: str, column: str, reason: str) -> float:
    """A finite number; raises `RowFault`."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0:  # NaN or infinite
        what = f"{text!r} is not a finite number" if text.strip() else "is empty"
        raise RowFault(reason, what, column=column, mend="a number")
    return value


def whole_field(text: str, column: str, reason: str, *, at_least: int | None = None) -> int:
    """A whole number ('8' or '8.0'), no smaller than `at_least`; raises `RowFault`."""
    value = number_field(text, column, reason)
    if value != int(value) or (at_least is not None and value < at_least) or abs(value) > 1 << 53:
        bound = "" if at_least is None else f", at least {at_least}"
        raise RowFault(reason, f"{text!r} is not a whole number{bound}", column=column)
    return int(value)


_TRUE: Final = frozenset(("true", "1", "yes"))
_FALSE: Final = frozenset(("false", "0", "no"))


def flag_field(text: str, column: str, reason: str) -> bool:
    """True or False from true/false, yes/no, 1/0 in any case; raises `RowFault`."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise RowFault(reason, f"{text!r} is neither true nor false", column=column)


def optional_whole(text: str, column: str, reason: str) -> int | None:
    """A whole number of at least 1; None when empty or 0; raises `RowFault`."""
    return whole_field(text, column, reason, at_least=0) or None if text else None


def gpu_types_field(text: str) -> tuple[str, ...]:
    """Acceptable GPU types, sorted, from 'A|B'.

    >>> gpu_types_field("V100M32|T4"), gpu_types_field("")
    (('T4', 'V100M32'), ())
    """
    return tuple(sorted({name.strip() for name in text.split("|")} - {""}))


def workload_fields(model: str, batch_size: str, iterations: str) -> Workload | None:
    """What a job computes; None when nothing is known; raises `RowFault`."""
    if not (model or batch_size or iterations):
        return None
    count = number_field(iterations, "iterations", "iterations_invalid") if iterations else None
    if count is not None and count <= 0:
        raise RowFault("iterations_invalid", f"{iterations} is not positive", column="iterations")
    batch = whole_field(batch_size, "batch_size", "batch_size_invalid", at_least=1) if batch_size else None
    return Workload(model, batch, count)


def deadline_fields(
    times: list[int], values: list[float], times_column: str, values_column: str
) -> tuple[Deadline, ...]:
    """Deadlines in growing order with values that don't grow; raises `RowFault`."""
    if len(values) != len(times):
        message = f"{len(times)} deadlines but {len(values)} values"
        raise RowFault("deadline_invalid", message, column=values_column)
    if min([*times, *values, 0]) < 0:
        raise RowFault("deadline_invalid", "a deadline or its value is negative", column=times_column)
    if times != sorted(set(times)) or values != sorted(values, reverse=True):
        raise RowFault("deadline_invalid", "times must grow and values may not", column=times_column)
    return tuple(Deadline(at, value) for at, value in zip(times, values, strict=True))


_STATUS: Final = {
    "pass": "completed",
    "succeeded": "completed",
    "terminated": "completed",
    "killed": "cancelled",
    "canceled": "cancelled",
}


def status_word(text: str) -> str:
    """The common word for how a job ended; words without a common one stay, in lower case.

    >>> status_word("Pass"), status_word("CANCELLED by 1001"), status_word("NODE_FAIL")
    ('completed', 'cancelled', 'node_fail')
    """
    words = text.lower().split()
    return _STATUS.get(words[0], words[0]) if words else ""


def is_number(text: str) -> bool:
    """Whether the text reads as a number; for recognizing formats."""
    try:
        float(text)
    except ValueError:
        return False
    return True
