"""`trainmaster trace`: look at, convert, download and make traces."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Final, TextIO, cast

import typer

from trainmaster.cli.support import (
    COLUMNS_HELP,
    FORMAT_HELP,
    FROM_HELP,
    TO_HELP,
    emit_json,
    output,
    own_columns,
    path,
    say,
    sliced,
)
from trainmaster.model.text import printable

if TYPE_CHECKING:
    from rich.console import Console

    from trainmaster.traces import Trace

app = typer.Typer(no_args_is_help=True, help="Look at, convert, download and make job traces.")

TraceFile = Annotated[
    Path, typer.Argument(parser=path, metavar="TRACE", help="A job log of any known format.")
]
Format = Annotated[str, typer.Option("--format", help=FORMAT_HELP)]
Columns = Annotated[list[str] | None, typer.Option("--columns", help=COLUMNS_HELP)]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row at fault (exit code 2).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout instead.")]
Seed = Annotated[int, typer.Option("--seed", help="Same seed, same bytes.")]


@app.command(
    epilog="Example: trainmaster trace info week.csv.gz",
    help="Statistics of a trace, and a picture of its jobs per hour, sizes and run times.",
)
def info(
    trace: TraceFile,
    format: Format = "auto",
    columns: Columns = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    from trainmaster.traces.statistics import describe

    with _waiting(f"reading {trace}"):
        loaded = _load(trace, format, columns, strict)
        statistics = describe(loaded)
    if json:
        emit_json({**statistics.as_dict(), "problems": loaded.problems.lines()})
        return
    from trainmaster.cli.trace_view import show_statistics

    show_statistics(_console(), statistics, loaded.problems)


@app.command(
    epilog="Example: trainmaster trace convert cluster_log.csv june.csv.gz --from 0 --to 2592000",
    help="Write a trace, or a part of it, as the normalized CSV.",
)
def convert(
    trace: TraceFile,
    out: Annotated[
        Path,
        typer.Argument(
            parser=path, metavar="OUT", help="The file to write (.csv or .csv.gz); replaced if there."
        ),
    ],
    format: Format = "auto",
    columns: Columns = None,
    strict: Strict = False,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help=FROM_HELP)] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help=TO_HELP)] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="At most this many jobs, the first.")] = None,
    fraction: Annotated[
        float, typer.Option("--sample", help="Keep this share of the jobs (0.1 = a tenth), same pattern.")
    ] = 1.0,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    from trainmaster.model.errors import InputError
    from trainmaster.traces import sample, slice_trace, write_csv

    if out.exists() and trace.exists() and out.samefile(trace):
        raise InputError("is the trace itself", file=out, mend="write another file, and rename it then")
    with _waiting(f"reading {trace}"):
        part = _load(trace, format, columns, strict)
        read = len(part)
        part = sliced(part, start, end)
        if fraction != 1.0:
            part = sample(part, fraction, seed)
        if limit is not None:
            part = slice_trace(part, limit=limit)
    _written(part, out, write_csv)
    if json:
        emit_json({"path": str(out), "jobs": len(part), "jobs_read": read, "dropped": part.dropped})
        return
    say(f"{len(part):,} of {read:,} jobs written to {out}")
    if part.origin:
        say(f"  its dates are not kept: 0 s is {part.origin}")
    for line in part.problems.lines():
        say(f"  {line}")


@app.command(
    epilog="Example: trainmaster trace synth --preset philly-like --days 7 --load 0.9 --nodes 32 --seed 0",
    help="Make a synthetic trace, shaped like published statistics and labelled synthetic everywhere.",
)
def synth(
    preset: Annotated[
        str, typer.Option("--preset", help="philly-like, helios-like or acme-like.")
    ] = "philly-like",
    days: Annotated[float, typer.Option("--days", help="Length; time 0 is a Monday, 0:00.")] = 7.0,
    load: Annotated[
        float, typer.Option("--load", help="Mean GPUs demanded / GPUs of the cluster; sets how many jobs.")
    ] = 0.9,
    nodes: Annotated[int, typer.Option("--nodes", help="Nodes of the cluster.")] = 32,
    gpus_per_node: Annotated[int, typer.Option("--gpus-per-node", help="GPUs of a node.")] = 8,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", parser=path, help="The file to write (.csv or .csv.gz); replaced if there."),
    ] = None,
    json: Json = False,
) -> None:
    from trainmaster.traces import write_csv
    from trainmaster.traces.synth import synthesize

    with _waiting("making the trace"):
        trace = synthesize(preset, days=days, load=load, nodes=nodes, gpus_per_node=gpus_per_node, seed=seed)
    if out is None:
        out = Path(f"{trace.name}-{days:g}d-load{load:g}-{nodes}x{gpus_per_node}-seed{seed}.csv.gz")
    _written(trace, out, write_csv)
    reached = trace.gpu_hours / (days * 24) / (nodes * gpus_per_node)
    if json:
        document: dict[str, Any] = {
            "path": str(out),
            "name": trace.name,
            "synthetic": True,
            "jobs": len(trace),
        }
        document.update(gpu_hours=trace.gpu_hours, load=reached, seed=seed, problems=trace.problems.lines())
        emit_json(document)
        return
    say(f"{trace.name}: {len(trace):,} jobs, {trace.gpu_hours:,.0f} GPU-hours, load {reached:.2f}")
    for line in trace.problems.lines():
        say(f"  {line}")
    say(f"written to {out}")
    say(
        f"next: trainmaster simulate {out} --nodes {nodes} --gpus-per-node {gpus_per_node} --policy fifo,srtf"
    )


@app.command(
    epilog="Example: trainmaster trace download philly --out traces",
    help="Fetch a published trace: resumed where it broke, checked; without a name, list them.",
)
def download(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Which one.")] = None,
    out: Annotated[
        Path, typer.Option("--out", parser=path, help="Folder to put it in; made if absent.")
    ] = Path(),
    json: Json = False,
) -> None:
    from trainmaster.traces.download import DATASETS, find_dataset
    from trainmaster.traces.download import download as fetch

    if name is None:
        rows = [(dataset.name, dataset.about, dataset.terms) for dataset in DATASETS.values()]
        if json:
            emit_json([dict(zip(("name", "about", "terms"), row, strict=True)) for row in rows])
        else:
            _list_datasets(rows)
        return
    dataset = find_dataset(name)
    say(f"{dataset.name}: {dataset.about}")
    say(f"terms: {dataset.terms}")
    with _progress() as progress:
        paths = fetch(dataset, out, progress=progress)
    if json:
        emit_json({"name": dataset.name, "files": [str(file) for file in paths], "then": list(dataset.then)})
        return
    for file in paths:
        say(f"complete: {file}")
    say(f"next, in {out.resolve()}:" if dataset.then else "")
    for command in dataset.then:
        say(f"  {command}")


NARROWEST: Final = 66
"""Characters that tables take at least."""

_OTHER_FORMATS: Final = (
    *(".arrow", ".bz2", ".db", ".feather", ".json", ".jsonl", ".npz", ".parquet", ".sqlite", ".tsv"),
    *(".xlsx", ".xz", ".yaml", ".zip", ".zst"),
)
"""Endings of names that promise something else than CSV."""


def _load(path: Path, format: str, columns: list[str] | None, strict: bool) -> Trace:
    from trainmaster.traces import load_trace

    return load_trace(path, format=format, strict=strict, columns=own_columns(columns))


def _written(trace: Trace, out: Path, write: Callable[[Trace, Path], None]) -> None:
    """Write the trace; the folder is made when it is absent."""
    from trainmaster.model.errors import InputError, OutputError

    if out.suffix.lower() in _OTHER_FORMATS:
        raise InputError(
            f"what is written is CSV, not {out.suffix[1:]}", file=out, mend="name it .csv or .csv.gz"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}") from error
    write(trace, out)


def _console(*, stderr: bool = False) -> Console:
    """Where `say` would print, or stderr."""
    from rich.console import Console

    stream = sys.stderr if stderr or not output().isatty() else output()
    console = Console(file=stream if stream.isatty() else cast(IO[str], _Trimmed(stream)), highlight=False)
    # In less, figures would be cut; a narrower terminal goes on in its next line.
    console.width = max(console.width, NARROWEST)
    return console


class _Trimmed:
    """A stream that gets no blanks at the ends of lines: rich pads tables to their full width."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(re.sub(r" +(?=\n)", "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """A sign of life on a terminal while something large is read."""
    from rich.markup import escape

    with _console(stderr=True).status(escape(printable(text))):
        yield


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """A bar for each file on a terminal, nothing elsewhere."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as SpeedColumn

    console = _console(stderr=True)
    columns: tuple[Any, ...] = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    tasks: dict[str, Any] = {}
    with Progress(
        *columns, SpeedColumn(), TimeRemainingColumn(), console=console, disable=not console.is_terminal
    ) as bars:

        def progress(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done, total=total)

        yield progress


def _list_datasets(rows: list[tuple[str, str, str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for header in ("name", "what it is", "terms"):
        table.add_column(header)
    for row in rows:
        table.add_row(*map(Text, row))
    console = _console()
    console.print(table)
    console.print("\nFetch one: trainmaster trace download NAME --out FOLDER")
