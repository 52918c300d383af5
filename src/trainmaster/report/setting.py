"""What was replayed, on what, and how: the facts that a reader needs to judge the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from . import glossary, story, text
from .records import Costs, Records, Run
from .story import Comparison

LONG_TAIL = 0.2
"""A share of the makespan after the last submission that is worth an explanation."""


def facts(records: Records, comparison: Comparison) -> list[tuple[str, str]]:
    """Pairs of a name and what is to be said of it; what the records don't tell is left out."""
    trace, first = records.trace, comparison.winner
    placement = glossary.about_choice(glossary.PLACEMENTS, first.placement)
    predictor = glossary.about_choice(glossary.PREDICTORS, first.predictor)
    waits = trace.recorded
    known = [
        ("Trace", trace.name),
        ("Jobs", _submitted(records)),
        (
            "Recorded in the log",
            f"mean wait {text.duration(waits.mean_wait_s)} over {text.plural(waits.jobs, 'job')}"
            if waits
            else "",
        ),
        *_clusters(records, comparison),
        ("Work asked", _demand(records, comparison)),
        ("Placement", placement),
        ("Relaxation", _each(comparison.runs, _relaxation)),
        ("Durations", predictor),
        ("Restart costs", _each(comparison.runs, lambda run: "" if run.costs is None else costs(run.costs))),
        ("Warm-up", _each(comparison.runs, _warm_up)),
        ("Utilization", quiet_tail(records, comparison)),
        ("Seed", _seeds(records.runs)),
    ]
    return [(name, words) for name, words in known if words]


def _submitted(records: Records) -> str:
    trace = records.trace
    dates = records.calendar.span(0, trace.span_s)
    over = f"{text.count(trace.jobs)}, submitted over {text.duration(trace.span_s)}"
    return f"{over}, {dates}" if dates else over


def _clusters(records: Records, comparison: Comparison) -> list[tuple[str, str]]:
    sizes = list(dict.fromkeys(name for run in records.runs if (name := _cluster(run))))
    if len(sizes) < 2:
        return [("Cluster", size) for size in sizes]
    return [("Clusters", f"{text.listing(sizes)}; shown above: {_cluster(comparison.winner)}")]


def _cluster(run: Run) -> str:
    if run.gpus is None:
        return text.plural(run.nodes, "node") if run.nodes else ""
    return text.plural(run.gpus, "GPU") + (f" on {text.plural(run.nodes, 'node')}" if run.nodes else "")


def _demand(records: Records, comparison: Comparison) -> str:
    demand = f"{text.count(records.trace.gpu_hours)} GPU-hours"
    load = story.load(records, comparison.winner.gpus)
    if load is None:
        return demand
    return f"{demand}, {text.percent(load)} of what the cluster has in that time{comparison.where}"


def _seeds(runs: Sequence[Run]) -> str:
    return text.listing([str(seed) for seed in dict.fromkeys(run.seed for run in runs) if seed is not None])


def _each(runs: Sequence[Run], tell: Callable[[Run], str]) -> str:
    """What is told of the runs: once where all agree, else with the policies."""
    told = {run.policy: tell(run) for run in runs}
    if len(set(told.values())) == 1:
        return next(iter(told.values()))
    return "; ".join(f"{policy}: {words}" for policy, words in told.items() if words)


def costs(costs: Costs) -> str:
    """
    >>> costs(Costs(10.0, 20.0, 30.0, 1800.0))
    'start 30 s, restore 20 s, write a checkpoint when stopped 10 s; a running job saves its work every 30 m'
    """
    named = (
        ("start", costs.start_s),
        ("restore", costs.restore_s),
        ("write a checkpoint when stopped", costs.checkpoint_s),
    )
    taken = [f"{name} {text.duration(seconds)}" for name, seconds in named if seconds is not None]
    interval = costs.checkpoint_interval_s
    saves = [] if interval is None else [f"a running job saves its work every {text.duration(interval)}"]
    return "; ".join([*([", ".join(taken)] if taken else []), *saves])


def _relaxation(run: Run) -> str:
    return (
        ""
        if run.relax_s is None
        else f"a job that has waited {text.duration(run.relax_s)} accepts any nodes with free GPUs"
    )


def _warm_up(run: Run) -> str:
    parts = [
        f"the {end} {text.duration(seconds)}"
        for end, seconds in (("first", run.warmup_s), ("last", run.cooldown_s))
        if seconds
    ]
    return f"jobs submitted in {text.listing(parts)} are replayed but not counted" if parts else ""


def quiet_tail(records: Records, comparison: Comparison) -> str:
    """Why utilization is low where the last job ends long after the last submission; else ""."""
    run, span = comparison.winner, records.trace.span_s
    makespan, overall, inside = run["makespan_s"], run["utilization"], run["utilization_in_span"]
    if makespan is None or overall is None or inside is None:
        return ""
    if makespan - span <= LONG_TAIL * makespan or inside <= overall:
        return ""
    low = f"the last job ends {text.duration(makespan - span)} after the last submission under {run.policy}"
    why = f"{low}, and GPUs idle in that tail lower utilization over the makespan to {text.percent(overall)}"
    return f"{why}; until the last submission, {text.percent(inside)} were in use"
