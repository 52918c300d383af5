"""The measures of a run: how each is called, printed and judged.

The terminal table, the HTML table and the list of definitions all come from here. What was
measured about the computing itself differs from call to call and stays in summary.json.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from . import text
from .records import Run


@dataclass(frozen=True)
class Measure:
    """One figure of a run.

    Args:
        figure: key in summary.json.
        name: heading.
        show: how to print it.
        better: which end is good; "" where neither is.
        meaning: definition in plain English.
        absent: why a run may lack it.
        core: always shown; the others only when some run has it.
    """

    figure: str
    name: str
    show: Callable[[float], str]
    better: Literal["lower", "higher", ""]
    meaning: str
    absent: str
    core: bool = False

    def cell(self, run: Run) -> str:
        value = run[self.figure]
        return text.MISSING if value is None else self.show(value)


def _gpu_hours(seconds: float) -> str:
    return f"{text.count(seconds / 3600)} GPU-h"


def _ratio(value: float) -> str:
    return f"{value:.3f}"


NOT_FINISHED = "no job finished"
NO_DEADLINES = "no job has a deadline"
NO_FAIRNESS = "not measured: there is only one tenant, or fairness was not asked for"
NOT_MEASURED = "not measured in this run"

MEASURES: tuple[Measure, ...] = (
    Measure(
        "jobs",
        "jobs",
        text.count,
        "",
        "Jobs that were replayed and count in the figures.",
        NOT_MEASURED,
        True,
    ),
    Measure("finished", "finished", text.count, "higher", "Jobs that ran to their end.", NOT_MEASURED, True),
    Measure(
        "mean_jct_s",
        "mean JCT",
        text.duration,
        "lower",
        "Job completion time (JCT): from submission to the end of the job, waiting included. The mean over "
        "all finished jobs.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "median_jct_s",
        "median JCT",
        text.duration,
        "lower",
        "Half of the jobs take less than this.",
        NOT_FINISHED,
        True,
    ),
    Measure("p90_jct_s", "p90 JCT", text.duration, "lower", "9 jobs in 10 take less.", NOT_FINISHED, True),
    Measure(
        "p99_jct_s",
        "p99 JCT",
        text.duration,
        "lower",
        "99 jobs in 100 take less: what the unluckiest hundredth goes through.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "mean_wait_s",
        "mean wait",
        text.duration,
        "lower",
        "JCT minus the time spent running: queueing, interruptions, starting and checkpointing.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "mean_first_wait_s",
        "first wait",
        text.duration,
        "lower",
        "From submission until the job got GPUs for the first time.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "preemptions",
        "preemptions",
        text.count,
        "lower",
        "How often a running job was stopped to let another one run; it resumes later from a checkpoint.",
        NOT_MEASURED,
        True,
    ),
    Measure(
        "makespan_s",
        "makespan",
        text.duration,
        "lower",
        "From the first submission until the last job ended.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "utilization",
        "utilization",
        text.percent,
        "higher",
        "Useful GPU-seconds divided by GPUs times makespan. A long quiet tail after the last submission "
        "lowers it.",
        NOT_FINISHED,
        True,
    ),
    Measure(
        "utilization_in_span",
        "utilization in span",
        text.percent,
        "higher",
        "GPU-seconds held by jobs between the first and the last submission, divided by GPUs times that "
        "span: how full the cluster was while jobs still arrived.",
        NOT_MEASURED,
    ),
    Measure(
        "overhead_gpu_s",
        "overhead",
        _gpu_hours,
        "lower",
        "GPU time spent on checkpoints and restarts after interruptions.",
        NOT_MEASURED,
        True,
    ),
    Measure(
        "lost_gpu_s",
        "lost work",
        _gpu_hours,
        "lower",
        "Work that had to be done again after failures.",
        "no failures were simulated",
    ),
    Measure(
        "miss_rate",
        "SLO miss",
        text.percent,
        "lower",
        "Jobs that missed their first deadline, of those with one.",
        NO_DEADLINES,
    ),
    Measure(
        "weighted_miss_rate",
        "value lost",
        text.percent,
        "lower",
        "Mean of 1 − value reached / first value over the jobs with deadlines.",
        NO_DEADLINES,
    ),
    Measure(
        "best_effort_mean_jct_s",
        "best-effort JCT",
        text.duration,
        "lower",
        "Mean JCT of the jobs without a deadline.",
        NO_DEADLINES,
    ),
    Measure(
        "guaranteed",
        "promised",
        text.count,
        "higher",
        "Jobs whose deadline was promised at submission.",
        NO_DEADLINES,
    ),
    Measure("broken", "broken promises", text.count, "lower", "Promised jobs that were late.", NO_DEADLINES),
    Measure(
        "fairness_loss",
        "fairness loss",
        _ratio,
        "lower",
        "How far tenants fell short of their share: the mean over hours and tenants of max(0, 1 − LTGF). "
        "LTGF is the GPU time that a tenant got in 24 hours over what its share and demand entitle it to.",
        NO_FAIRNESS,
    ),
    Measure(
        "ltgf_min",
        "worst tenant",
        _ratio,
        "higher",
        "The lowest mean LTGF of a tenant; 1 = got its share.",
        NO_FAIRNESS,
    ),
    Measure("jain", "Jain index", _ratio, "higher", "Evenness over tenants; 1 = all alike.", NO_FAIRNESS),
)

BY_FIGURE = {measure.figure: measure for measure in MEASURES}


def present(runs: Sequence[Run]) -> list[Measure]:
    """The measures to show for these runs: the core ones, and those that any run has.

    Where all jobs finished, a column that says so again is left out.
    """
    all_finished = all(run["finished"] == run["jobs"] for run in runs)
    return [
        item
        for item in MEASURES
        if (item.core or any(run[item.figure] is not None for run in runs))
        and not (all_finished and item.figure == "finished")
    ]


def judge(measure: Measure, runs: Sequence[Run]) -> list[Literal["best", "worst", ""]]:
    """Mark best and worst among runs on the same cluster; nothing where all look alike.

    Runs that print the same text share the mark.
    """
    marks: list[Literal["best", "worst", ""]] = [""] * len(runs)
    if not measure.better:
        return marks
    clusters = [(run.nodes, run.gpus, run.seed) for run in runs]
    for cluster in dict.fromkeys(clusters):
        values = {
            index: value
            for index, run in enumerate(runs)
            if clusters[index] == cluster and (value := run[measure.figure]) is not None
        }
        if not values:
            continue
        low, high = (measure.show(choose(values.values())) for choose in (min, max))
        if low == high:
            continue
        best, worst = (low, high) if measure.better == "lower" else (high, low)
        for index, value in values.items():
            shown = measure.show(value)
            marks[index] = "best" if shown == best else "worst" if shown == worst else ""
    return marks
