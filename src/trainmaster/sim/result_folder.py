"""What must hold of a result folder before it is written, and before it is read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmaster.model.errors import InputError
from trainmaster.sim.result import FILES


def refuse_to_replace(folder: str | Path, inputs: Iterable[str | Path]) -> None:
    """A run must not replace or remove what it reads.

    Args:
        folder: of the results.
        inputs: files that the run reads; of a folder, every file in it.

    Raises:
        InputError: one of them is a file of the result folder, under this or another name.
    """
    targets = [path for path in (Path(folder, name) for name in FILES) if path.is_file()]
    if not targets:
        return
    for source in (file for each in inputs for file in _files(Path(each))):
        for target in targets:
            if target.samefile(source):
                other = "" if str(source) == str(target) else f", which is {target}"
                message = f"is read by this run, and its results would replace it{other}"
                raise InputError(message, file=source, mend="choose another --out")


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (file for file in sorted(path.iterdir()) if file.is_file())


def refuse_cut_off(folder: str | Path, *, events: bool = False) -> None:
    """The records must hold a row for every job of every run that summary.json tells of.

    Args:
        folder: of the results.
        events: look at events.jsonl too: every job that finished must be seen to finish.

    Raises:
        InputError: rows are missing, or there are too many. A file that is missing or no summary
            is not the matter here.
    """
    folder = Path(folder)
    mend = "it is cut off or not of this run: simulate again"
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        expected = summary["trace"]["jobs"] * len(summary["runs"])
        # A line each: names hold no line breaks, and the last line has an end too.
        rows = _count(folder / "jobs.csv", b"\n") - 1
    except (OSError, ValueError, KeyError, TypeError):
        return
    if rows != expected:
        raise InputError(
            f"holds {rows:,} of the {expected:,} rows of summary.json", file=folder / "jobs.csv", mend=mend
        )
    log = folder / "events.jsonl"
    if events and log.is_file():
        with (folder / "jobs.csv").open(newline="", encoding="utf-8") as file:
            finished = sum(row.get("status") == "finished" for row in csv.DictReader(file))
        seen = _count(log, b'"event": "finished"')
        if seen < finished:
            what = f"tells of {seen:,} of the {finished:,} jobs that finished"
            raise InputError(what, file=log, mend=mend)


def _count(path: Path, what: bytes) -> int:
    with path.open("rb") as file:
        return sum(line.count(what) for line in file)
