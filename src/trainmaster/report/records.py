"""The result records of `simulate --out DIR`, loaded and validated.

Three files lie in a result folder; the report reads nothing else.

`summary.json` and `jobs.csv` are described in the interface document. `jobs.csv` may
carry the columns `nodes` and `seed`, which tell the runs of a sweep apart. Without
them, the k-th row of a job under a policy belongs to that policy's k-th run. `series` reads series.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainmaster.model.errors import InputError

from .dates import Calendar
from .document import Node, parse_json
from .series import RunKey, Series, series_of

if TYPE_CHECKING:
    from .jobs import Jobs

SCHEMA = 1
MEND = "make the folder with `trainmaster simulate TRACE ... --out DIR`"

FIGURES = (
    "jobs",
    "finished",
    "mean_jct_s",
    "median_jct_s",
    "p90_jct_s",
    "p99_jct_s",
    "mean_wait_s",
    "mean_first_wait_s",
    "makespan_s",
    "utilization",
    "utilization_in_span",
    "preemptions",
    "overhead_gpu_s",
    "lost_gpu_s",
    "slo_jobs",
    "slo_missed",
    "miss_rate",
    "weighted_miss_rate",
    "best_effort_mean_jct_s",
    "mean_run_s",
    "samples_done",
    "samples_planned",
    "metric_loss_mean",
    "metric_loss_worst",
    "tolerance_missed",
    "members_harmed",
    "guaranteed",
    "broken",
    "fairness_loss",
    "ltgf_min",
    "ltgf_max_over_min",
    "jain",
    "sharing_loss_share",
    "decisions",
    "decision_ms_mean",
    "decision_ms_p99",
    "fallbacks",
    "events",
    "cpu_s",
    "wall_s",
    "peak_rss_mib",
)
"""Figures of a run: numbers, or None where they do not apply."""


@dataclass(frozen=True)
class Costs:
    """Seconds that interruptions and starts take; None where the records don't tell."""

    checkpoint_s: float | None
    restore_s: float | None
    start_s: float | None
    checkpoint_interval_s: float | None


@dataclass(frozen=True)
class Run:
    """One replay: a policy on a cluster with a seed, and its figures.

    `relax_s` is the waiting time after which a job accepts any nodes; None: never, or not recorded.
    `backfill` is the value of that knob, where the policy has it.
    `run["mean_jct_s"]` is a float, or None where the figure does not apply.
    """

    policy: str
    gpus: int | None
    nodes: int | None
    seed: int | None
    predictor: str | None
    placement: str | None
    figures: Mapping[str, float | None]
    costs: Costs | None = None
    relax_s: float | None = None
    backfill: str | None = None
    warmup_s: float | None = None
    cooldown_s: float | None = None

    def __getitem__(self, figure: str) -> float | None:
        return self.figures[figure]

    @property
    def key(self) -> RunKey:
        return RunKey(self.policy, self.nodes, self.seed)


@dataclass(frozen=True)
class RecordedWaits:
    """The waits that the log itself holds: their mean over so many jobs."""

    jobs: int
    mean_wait_s: float


@dataclass(frozen=True)
class Trace:
    """What was replayed.

    `dropped` counts the rows at fault, `ignored` the wishes that the replay did not heed,
    by reason. `synthetic`: the jobs were generated, as the records or the name say. The first
    submission is at `start_s` on the trace's clock, `start_unix_s` (None: not known) in `zone`.
    """

    path: str
    name: str
    synthetic: bool
    jobs: int
    dropped: Mapping[str, int]
    ignored: Mapping[str, int]
    span_s: float
    gpu_hours: float
    recorded: RecordedWaits | None = None
    start_s: float = 0.0
    start_unix_s: float | None = None
    zone: str = "UTC"


@dataclass(frozen=True)
class Records:
    """All records of one result folder.

    `runs` keeps the order of summary.json; `jobs` and `series` are looked up by
    `run.key` (a run may have no series). `baseline` is the policy that the call named as such.
    """

    version: str
    command: str | None
    trace: Trace
    seed: int | None
    runs: tuple[Run, ...]
    jobs: Mapping[RunKey, Jobs]
    series: Mapping[RunKey, Series]
    baseline: str | None = None

    @property
    def calendar(self) -> Calendar:
        """Dates, where the records tell that of the trace's first submission.

        The first submission that was replayed may be a later one.
        """
        trace = self.trace
        if trace.start_unix_s is None:
            return Calendar(None)
        replayed = next((item.first_submission_s for item in self.series.values()), None)
        later_s = 0.0 if replayed is None else replayed - trace.start_s
        return Calendar(trace.start_unix_s + later_s, "" if trace.zone == "local" else trace.zone)


def load_records(folder: str | Path) -> Records:
    """Load summary.json, jobs.csv and series.json of a result folder.

    Raises:
        InputError: a file is missing, unreadable, of another schema, or contradicts
            another one; names file, place and mend.
    """
    from .jobs import read_jobs

    folder = Path(folder)
    if not folder.is_dir():
        raise InputError("is not a result folder", file=folder, mend=MEND)
    summary = _document(folder / "summary.json")
    runs = tuple(_run(node, summary) for node in summary["runs"].items())
    if not runs:
        raise summary["runs"].error("has no runs")
    keys = [run.key for run in runs]
    for key in keys:
        if keys.count(key) > 1:
            raise summary["runs"].error(f"names {key.policy!r} twice for the same cluster and seed")
    series = {item.key: item for item in map(series_of, _document(folder / "series.json")["runs"].items())}
    for key in series:
        if key not in keys:
            raise InputError(
                f"has {key.policy!r} on {key.nodes} nodes with seed {key.seed}, summary.json has no such run",
                file=folder / "series.json",
                mend=f"the files stem from different replays; {MEND}",
            )
    return Records(
        version=summary["trainmaster"].text(),
        command=summary["command"].optional_text(),
        trace=_trace(summary["trace"]),
        seed=summary["seed"].optional_whole(),
        runs=runs,
        jobs=read_jobs(folder / "jobs.csv", runs, MEND),
        series=series,
        baseline=_named(summary["baseline"], runs),
    )


def _named(node: Node, runs: Sequence[Run]) -> str | None:
    baseline = node.optional_text()
    if baseline is not None and all(run.policy != baseline for run in runs):
        raise node.error(f"names {baseline!r}, of which there is no run")
    return baseline


def as_run(run: Run | Mapping[str, Any]) -> Run:
    """A run from one entry of `summary.json["runs"]`; a `Run` is returned as it is.

    >>> as_run({"policy": "fifo", "cluster": {"gpus": 8, "nodes": 1}, "mean_jct_s": 12.0})["mean_jct_s"]
    12.0
    """
    return run if isinstance(run, Run) else _run(Node(run, "run"), Node({}, "run"))


def _document(path: Path) -> Node:
    document = parse_json(path, MEND)
    schema = document["schema"].value
    if schema != SCHEMA:
        raise document["schema"].error(f"is {schema!r}, this version reads {SCHEMA}")
    return document


def _run(node: Node, summary: Node) -> Run:
    cluster = node["cluster"] if node["cluster"].value is not None else summary["cluster"]
    seed = node["seed"] if node["seed"].value is not None else summary["seed"]
    return Run(
        policy=node["policy"].text(),
        gpus=cluster["gpus"].optional_whole() if cluster.value is not None else None,
        nodes=cluster["nodes"].optional_whole() if cluster.value is not None else None,
        seed=seed.optional_whole(),
        predictor=node["predictor"].optional_text(),
        placement=node["placement"].optional_text(),
        figures={name: node[name].optional_number() for name in FIGURES},
        costs=None if node["costs"].value is None else _costs(node["costs"]),
        relax_s=node["relax_s"].optional_number(),
        backfill=None if node["knobs"].value is None else node["knobs"]["backfill"].optional_text(),
        warmup_s=node["warmup_s"].optional_number(),
        cooldown_s=node["cooldown_s"].optional_number(),
    )


def _costs(node: Node) -> Costs:
    return Costs(
        checkpoint_s=node["checkpoint_s"].optional_number(),
        restore_s=node["restore_s"].optional_number(),
        start_s=node["start_s"].optional_number(),
        checkpoint_interval_s=node["checkpoint_interval_s"].optional_number(),
    )


def _trace(node: Node) -> Trace:
    path = node["path"].optional_text() or ""
    name = node["name"].optional_text() or path.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return Trace(
        path=path,
        name=name,
        synthetic=node["synthetic"].value is True or "synth" in f"{path}{name}".lower(),
        jobs=node["jobs"].whole(),
        dropped=_counts(node["dropped"]),
        ignored=_counts(node["ignored"]),
        span_s=node["span_s"].number(),
        gpu_hours=node["gpu_hours"].number(),
        recorded=_recorded(node["recorded"]),
        start_s=node["start_s"].optional_number() or 0.0,
        start_unix_s=node["start_unix_s"].optional_number(),
        zone=node["zone"].optional_text() or "UTC",
    )


def _recorded(node: Node) -> RecordedWaits | None:
    if node.value is None or not node["jobs"].whole():
        return None
    return RecordedWaits(node["jobs"].whole(), node["mean_wait_s"].number())


def _counts(node: Node) -> dict[str, int]:
    return {} if node.value is None else {reason: node[reason].whole() for reason in node.names()}
