"""Run a benchmark suite: bench/run.py SUITE [--only SUBSTRING] [--skip SUBSTRING] [--list] [--out FOLDER].

Prints a table and writes FOLDER/SUITE.json, a list of rows. Exits 0 even when rows fall
short of their targets.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from support import ROOT, Suite

SUITES = ("core",)
"""Each is a module beside this one with a `SUITE`."""


def main() -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description="Run a benchmark suite.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--skip", nargs="+", default=[], help="no rows whose name contains one of these")
    parser.add_argument(
        "--list", action="store_true", help="name the rows and their targets, measure nothing"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench", help="folder of SUITE.json")
    arguments = parser.parse_args()
    suite: Suite = importlib.import_module(arguments.suite).SUITE
    rows = suite.selected(arguments.only, arguments.skip)
    if not rows:
        parser.error(f"no row of {suite.name} contains {arguments.only!r} (--list names them)")
    if arguments.list:
        for row in rows:
            target = "" if row.target is None else f"{'<=' if row.better == 'lower' else '>='} {row.target:g}"
            print(f"{row.name:56} {target:10} {row.unit}")
        return 0
    begun = time.perf_counter()
    entries = []
    for number, row in enumerate(rows, start=1):
        print(f"bench: {number} of {len(rows)}: {row.name}", file=sys.stderr, flush=True)
        entries.append(row.entry())
    path = write(entries, arguments.out, suite.name)
    show(entries)
    print(f"{path}: {len(entries)} rows in {time.perf_counter() - begun:.0f} s")
    return 0


def write(entries: list[dict[str, Any]], folder: Path, name: str) -> Path:
    """Write the rows, all or nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(entries, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def show(entries: list[dict[str, Any]]) -> None:
    """The table, and a line on every row that has no value or falls short."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("row", no_wrap=True)
    for column in ("value", "target"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("unit", no_wrap=True)
    table.add_column("ok", no_wrap=True)
    for entry in entries:
        sign = "<=" if entry["better"] == "lower" else ">="
        table.add_row(
            entry["name"],
            "-" if entry["value"] is None else f"{entry['value']:.4g}",
            "" if entry["target"] is None else f"{sign} {entry['target']:g}",
            entry["unit"],
            {True: "yes", False: "[red]NO[/red]", None: ""}[entry["ok"]],
        )
    console = Console(width=None if sys.stdout.isatty() else 120, highlight=False)
    console.print(table)
    for entry in entries:
        if entry["ok"] is False or entry["value"] is None:
            console.print(f"{entry['name']}: {entry['note']}", markup=False)
    judged = [entry["ok"] for entry in entries if entry["ok"] is not None]
    console.print(f"{sum(judged)} of {len(judged)} targets reached")


if __name__ == "__main__":
    sys.exit(main())
