"""How job completion times and waiting times spread over the jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import charts, text
from .jobs import Floats, Jobs
from .parts import BarPanel, BarRow, Cell, Figure, Table, figure, time_cell
from .records import Records
from .sizes import SIZES, size_class
from .story import Comparison

POINTS = 200
"""Quantiles drawn of each distribution."""
STEPS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
MOST_TENANTS = 15
NONE_FINISHED = "no such job finished"

Mask = npt.NDArray[np.bool_]
Grouping = Callable[[Jobs], list[tuple[str, Mask]]]


def quantiles(values: Floats) -> list[float]:
    """POINTS + 1 quantiles of the finite values, lowest to highest; empty where there are none."""
    values = np.sort(values[np.isfinite(values)])
    if not values.size:
        return []
    rows = np.arange(POINTS + 1) * values.size // POINTS
    return [float(value) for value in values[np.minimum(rows, values.size - 1)]]


def jct_figure(records: Records, comparison: Comparison, colours: Mapping[str, str]) -> Figure | None:
    """The distribution of the JCT under every policy."""
    found = {run.policy: quantiles(records.jobs[run.key].jct_s) for run in comparison.runs}
    found = {policy: values for policy, values in found.items() if values}
    if not found:
        return None
    medians = {
        run.policy: run["median_jct_s"] or found[run.policy][POINTS // 2]
        for run in comparison.runs
        if run.policy in found
    }
    ranked = sorted(medians, key=lambda policy: medians[policy])
    shares = [index / POINTS for index in range(POINTS + 1)]
    curves = [
        charts.Curve(policy, found[policy], shares, text.duration(medians[policy])) for policy in ranked
    ]
    first, baseline = ranked[0], comparison.baseline.policy
    title = f"Half of the jobs are done within {text.duration(medians[first])} under {first}"
    if baseline in medians and text.duration(medians[baseline]) != text.duration(medians[first]):
        title += f", within {text.duration(medians[baseline])} under {baseline}"
    strong = {comparison.winner.policy, baseline} if len(curves) > 1 else set()

    def draw(name: str, width: float) -> str:
        return charts.distribution(name, title, "half of the jobs done in", curves, colours, strong, width)

    rows = []
    for policy in ranked:
        steps = {step: found[policy][round(step * POINTS)] for step in STEPS} | {0.5: medians[policy]}
        rows.append([Cell(policy), *(time_cell(value, "") for value in steps.values())])
    headings = [("policy", ""), *((f"{text.percent(step)} of jobs", "") for step in STEPS)]
    subtitle = "share of the jobs done within a time of their submission; further left is better"
    return figure(
        title, subtitle, "jct", draw, table=Table("Time within which jobs are done", headings, rows)
    )


@dataclass(frozen=True)
class Waits:
    """Waiting of a group of jobs by policy, seconds; a policy that finished none of them is missing."""

    group: str
    share: float
    mean: Mapping[str, float]
    median: Mapping[str, float]
    p90: Mapping[str, float]


def waits_by(records: Records, comparison: Comparison, groups: Grouping) -> list[Waits]:
    """Waiting times by group of jobs and policy; groups without jobs are left out."""
    amounts: dict[str, int] = {}
    waits: dict[str, dict[str, Floats]] = {}
    for run in comparison.runs:
        jobs = records.jobs[run.key]
        for group, mask in groups(jobs):
            values = jobs.wait_s[mask]
            amounts[group] = max(amounts.get(group, 0), values.size)
            waits.setdefault(group, {})[run.policy] = values[np.isfinite(values)]
    total = sum(amounts.values())
    found = []
    for group, by_policy in waits.items():
        having = {policy: values for policy, values in by_policy.items() if values.size}
        if having:
            mean = {policy: float(values.mean()) for policy, values in having.items()}
            median = {policy: float(np.median(values)) for policy, values in having.items()}
            p90 = {policy: float(np.quantile(values, 0.9)) for policy, values in having.items()}
            found.append(Waits(group, amounts[group] / total, mean, median, p90))
    return found


def by_size(jobs: Jobs) -> list[tuple[str, Mask]]:
    """Jobs by the number of GPUs they ask."""
    sizes, inverse = np.unique(jobs.num_gpus, return_inverse=True)
    classes = np.array([size_class(float(size)) for size in sizes], dtype=np.int64)[inverse]
    return [(name, classes == index) for index, (_, name) in enumerate(SIZES)]


def by_tenant(reference: Jobs) -> Grouping:
    """Jobs by tenant: those with most jobs in `reference`, the rest taken together."""
    amounts = np.bincount(reference.tenant, minlength=len(reference.tenants)).tolist()
    ranked = sorted(
        (code for code, amount in enumerate(amounts) if amount),
        key=lambda code: (-amounts[code], reference.tenants[code]),
    )
    named = ranked if len(ranked) <= MOST_TENANTS else ranked[: MOST_TENANTS - 1]
    rest = ranked[len(named) :]

    def groups(jobs: Jobs) -> list[tuple[str, Mask]]:
        found = [(jobs.tenants[code] or "(no name)", jobs.tenant == code) for code in named]
        return [*found, (f"{len(rest)} others", np.isin(jobs.tenant, rest))] if rest else found

    return groups


def waits_table(caption: str, heading: str, found: list[Waits], comparison: Comparison) -> Table:
    """Mean, median and 90th percentile of the waiting times."""
    policies = [run.policy for run in comparison.runs]
    headings = [(heading, ""), ("policy", ""), ("mean wait", ""), ("median wait", ""), ("p90 wait", "")]
    rows = [
        [
            Cell(waits.group),
            Cell(policy),
            *(
                time_cell(values.get(policy), NONE_FINISHED)
                for values in (waits.mean, waits.median, waits.p90)
            ),
        ]
        for waits in found
        for policy in policies
    ]
    return Table(caption, headings, rows)


def size_panels(found: list[Waits], comparison: Comparison, colours: Mapping[str, str]) -> list[BarPanel]:
    """Mean waiting time by policy, one panel a size class, on one common scale."""
    longest = max((value for waits in found for value in waits.mean.values()), default=0.0) or 1.0
    panels = []
    for waits in found:
        rows = []
        for run in comparison.runs:
            value = waits.mean.get(run.policy)
            shown = text.MISSING if value is None else text.duration(value)
            rows.append(BarRow(run.policy, colours[run.policy], shown, 100 * (value or 0.0) / longest))
        panels.append(BarPanel(waits.group, f"{text.percent(waits.share)} of the jobs", rows))
    return panels


def tenant_figure(found: list[Waits], comparison: Comparison, colours: Mapping[str, str]) -> Figure | None:
    """Mean waiting time by tenant; None where there is only one."""
    if len(found) < 2:
        return None
    winner, baseline = comparison.winner.policy, comparison.baseline.policy
    second = baseline if baseline != winner else next((run.policy for run in comparison.runs[1:]), None)
    rows = [(waits.group, waits.mean) for waits in found]
    title = _tenant_title(found, winner, second)
    subtitle = "mean wait of each tenant’s jobs"
    if comparison.others:
        subtitle += "; small grey dots are the other policies"
    values = [value for waits in found for value in waits.mean.values()]
    if charts.mostly_crushed(values) and min(values) < charts.SHORTEST_WAIT_S:
        subtitle += f"; waits under {text.duration(charts.SHORTEST_WAIT_S)}, 0 s too, are drawn there"

    def draw(name: str, width: float) -> str:
        return charts.dumbbells(name, title, rows, winner, second, colours, width)

    table = waits_table("Waiting by tenant", "tenant", found, comparison)
    return figure(title, subtitle, "tenants", draw, table=table)


def _tenant_title(found: list[Waits], winner: str, second: str | None) -> str:
    """How many tenants gain; times that read alike are no gain."""
    pairs = [
        (waits.mean[winner], waits.mean[second])
        for waits in found
        if second is not None and winner in waits.mean and second in waits.mean
    ]
    unlike = [(mine, other) for mine, other in pairs if text.duration(mine) != text.duration(other)]
    shorter = sum(mine < other for mine, other in unlike)
    if not pairs:
        return f"Waiting by tenant under {winner}"
    if not unlike:
        return f"Every tenant waits as long under {winner} as under {second}"
    if shorter == len(pairs):
        return f"Every tenant waits less under {winner} than under {second}"
    return f"{shorter} of {len(pairs)} tenants wait less under {winner} than under {second}"


def mix(jobs: Jobs) -> list[tuple[str, float, float | None]]:
    """Size classes with their share of the jobs and of the GPU time of the finished ones."""
    run_s = np.nan_to_num(jobs.jct_s - jobs.wait_s) * jobs.num_gpus
    total = float(run_s.sum())
    found = []
    for name, mask in by_size(jobs):
        if mask.any():
            found.append((name, float(mask.mean()), float(run_s[mask].sum()) / total if total else None))
    return found
