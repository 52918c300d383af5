"""Results in memory, and the files of `simulate --out DIR`.

summary.json, jobs.csv and series.json are described in docs/results.md. Everything is
written under a temporary name first and renamed when all of it is there.
"""

from __future__ import annotations

import csv
import json
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from trainmaster._version import __version__
from trainmaster.metrics.ledger import Ledger
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError, OutputError
from trainmaster.model.job import Job
from trainmaster.model.units import SECOND, to_gpus

if TYPE_CHECKING:
    import numpy as np

JOB_COLUMNS = (
    "policy",
    "job_id",
    "tenant",
    "num_gpus",
    "submit_s",
    "first_start_s",
    "finish_s",
    "jct_s",
    "wait_s",
    "run_s",
    "preemptions",
    "status",
    "deadline_s",
    "deadline_met",
    "mode",
    "group_id",
    "samples",
    "metric_loss",
    "tolerance",
    "user",
    "held_s",
    "nodes",
    "seed",
)
"""Columns of jobs.csv. A field that does not apply is empty."""

FILES = ("summary.json", "jobs.csv", "series.json", "events.jsonl", "report.html")
"""What a result folder can hold."""


@dataclass(repr=False)
class RunRecord:
    """What is kept of one run; small enough to travel between processes.

    Attributes:
        summary: the run's entry in summary.json.
        series: the run's entry in series.json.
        first_start, finish, run, held, preemptions: by job, ns; -1 = never.
        status: by job.
    """

    summary: dict[str, Any]
    series: dict[str, Any]
    first_start: array[int]
    finish: array[int]
    run: array[int]
    held: array[int]
    preemptions: array[int]
    status: list[str]

    def __repr__(self) -> str:
        run = self.summary
        nodes, gpus = run["cluster"]["nodes"], run["cluster"]["gpus"]
        return f"RunRecord({run['policy']!r}, {nodes} nodes, {gpus:g} GPUs, seed {run['seed']})"

    @classmethod
    def of(cls, ledger: Ledger, summary: dict[str, Any], series: dict[str, Any]) -> RunRecord:
        """Keep the columns of a closed ledger."""
        held = array("q", bytes(8 * len(ledger.jobs)))
        for row, asked, left in zip(ledger.hold_row, ledger.hold_asked, ledger.hold_left, strict=True):
            held[row] += left - asked
        return cls(
            summary,
            series,
            ledger.first_start,
            ledger.finish,
            ledger.run,
            held,
            ledger.preemptions,
            ledger.status,
        )


@dataclass(repr=False)
class Result:
    """All runs of one call of `simulate`.

    >>> import trainmaster as tm
    >>> trace = tm.synthesize("philly-like", days=0.2, load=0.5, nodes=2, seed=0)
    >>> result = tm.simulate(trace, tm.Cluster.homogeneous(2, 8), policy="srtf")
    >>> result.summary["policy"], result.summary["finished"] == len(result.jobs)
    ('srtf', True)
    >>> result
    Result('synthetic-philly-like', 20 jobs, 1 run: srtf)
    """

    trace: dict[str, Any]
    cluster: Cluster
    seed: int
    submitted: list[Job]
    records: list[RunRecord] = field(default_factory=list)
    command: str | None = None
    baseline: str | None = None

    def __repr__(self) -> str:
        policies = ", ".join(dict.fromkeys(run["policy"] for run in self.runs))
        runs = f"{len(self.runs)} run{'' if len(self.runs) == 1 else 's'}"
        return f"Result({self.trace['name']!r}, {len(self.submitted):,} jobs, {runs}: {policies})"

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The figures of each run, as in summary.json."""
        return [record.summary for record in self.records]

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the only run.

        Raises:
            InputError: there are several; use `runs`.
        """
        if len(self.records) != 1:
            raise InputError(f"there are {len(self.records)} runs", mend="use result.runs")
        return self.records[0].summary

    @property
    def document(self) -> dict[str, Any]:
        """summary.json."""
        return {
            "schema": 1,
            "trainmaster": __version__,
            **({} if self.command is None else {"command": self.command}),
            **({} if self.baseline is None else {"baseline": self.baseline}),
            "trace": self.trace,
            "cluster": {"gpus": self.cluster.gpus, "nodes": len(self.cluster.nodes)},
            "seed": self.seed,
            "runs": self.runs,
        }

    @property
    def jobs(self) -> np.ndarray[Any, Any]:
        """One row per job and run, with the columns of jobs.csv; NaN = does not apply."""
        import numpy as np

        columns = list(zip(*self._rows(), strict=True)) or [()] * len(JOB_COLUMNS)
        text = {"policy", "job_id", "tenant", "status", "mode", "group_id", "user"}
        whole = {"preemptions", "nodes", "seed"}
        arrays = []
        for name, values in zip(JOB_COLUMNS, columns, strict=True):
            if name in text:
                arrays.append(np.array(values, dtype=np.str_))
            elif name in whole:
                arrays.append(np.array(values, dtype=np.int64))
            else:
                arrays.append(np.array([np.nan if v == "" else float(v) for v in values]))
        kinds = [(name, column.dtype) for name, column in zip(JOB_COLUMNS, arrays, strict=True)]
        table = np.empty(len(arrays[0]), dtype=kinds)
        for name, column in zip(JOB_COLUMNS, arrays, strict=True):
            table[name] = column
        return table

    def to_pandas(self) -> Any:
        """`jobs` as a pandas DataFrame (needs the extra `pandas`)."""
        pandas = _optional("pandas")
        return pandas.DataFrame({name: self.jobs[name] for name in JOB_COLUMNS})

    def to_polars(self) -> Any:
        """`jobs` as a polars DataFrame (needs the extra `polars`)."""
        polars = _optional("polars")
        return polars.DataFrame({name: self.jobs[name] for name in JOB_COLUMNS})

    def write(
        self,
        folder: str | Path,
        *,
        events: list[Path] | None = None,
        report: Callable[[Path, Path], None] | None = None,
    ) -> list[Path]:
        """Write the files of a result folder; what an earlier run left there is replaced.

        Args:
            folder: made if absent.
            events: event logs of the runs, in order, to be joined.
            report: called with (folder of the records, path of the report to write).

        Returns the paths written.

        Raises:
            OutputError: something can't be written; nothing is changed then.
            InputError: the trace is one of the files that would be replaced.
        """
        from trainmaster.sim.result_folder import refuse_to_replace

        refuse_to_replace(folder, filter(None, [self.trace["path"]]))
        with replaced_files(Path(folder)) as draft:
            with draft.joinpath("summary.json").open("w", encoding="utf-8") as file:
                json.dump(self.document, file, indent=1, allow_nan=False)
                file.write("\n")
            # A log's own names need not be valid Unicode.
            jobs = draft.joinpath("jobs.csv")
            with jobs.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
                self._write_jobs(file)
            with draft.joinpath("series.json").open("w", encoding="utf-8") as file:
                json.dump(
                    {"schema": 1, "runs": [record.series for record in self.records]}, file, allow_nan=False
                )
            if events is not None:
                with draft.joinpath("events.jsonl").open("wb") as joined:
                    for path in events:
                        joined.write(path.read_bytes())
            if report is not None:
                report(draft, draft / "report.html")
        return [Path(folder) / name for name in FILES if (Path(folder) / name).exists()]

    def _write_jobs(self, file: TextIO) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(JOB_COLUMNS)
        writer.writerows(self._rows())

    def _rows(self) -> Iterator[tuple[object, ...]]:
        for record in self.records:
            policy, seed = record.summary["policy"], record.summary["seed"]
            nodes = record.summary["cluster"]["nodes"]
            columns = (
                record.first_start,
                record.finish,
                record.run,
                record.held,
                record.preemptions,
                record.status,
            )
            for job, *values in zip(self.submitted, *columns, strict=True):
                first, finish, run, held, preemptions, status = values
                ended = finish >= 0
                deadline = job.deadlines[0].at if job.deadlines else None
                yield (
                    policy,
                    job.id,
                    job.tenant,
                    to_gpus(job.request.gpus),
                    _s(job.submit),
                    _s(first) if first >= 0 else "",
                    _s(finish) if ended else "",
                    _s(finish - job.submit) if ended else "",
                    _s(finish - job.submit - run) if ended else "",
                    _s(run),
                    preemptions,
                    status,
                    "" if deadline is None else _s(deadline),
                    "" if deadline is None else int(status == "finished" and finish <= deadline),
                    "",
                    "",
                    "",
                    "",
                    "",
                    job.user,
                    _s(held),
                    nodes,
                    seed,
                )


def _s(ns: int) -> int | float:
    """Nanoseconds as seconds: an int when whole."""
    whole, rest = divmod(ns, SECOND)
    return whole if not rest else ns / SECOND


def _optional(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"{name} is not installed", mend=f"pip install 'trainmaster[{name}]'") from None


@contextmanager
def replaced_files(folder: Path) -> Iterator[Path]:
    """A temporary folder whose files replace those of a result folder at the end, all or none.

    Raises:
        OutputError: it can't be made, or writing fails; the temporary folder is removed.
    """
    import shutil
    import tempfile

    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder))
    except OSError as error:
        raise OutputError(f"{folder}: can't be written: {error.strerror} (choose another --out)") from None
    try:
        yield draft
        made = [name for name in FILES if (draft / name).exists()]
        taken = next((folder / name for name in FILES if (folder / name).is_dir()), None)
        if taken is not None:
            raise OutputError(f"{taken}: is a folder; nothing was changed (choose another --out)")
        for name in made:
            (draft / name).replace(folder / name)
        for name in FILES:
            if name not in made:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: can't be written: {error.strerror}; nothing was changed") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if new and not any(folder.iterdir()):
            folder.rmdir()
