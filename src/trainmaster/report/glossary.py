"""What policies, predictors and placements do, in plain English."""

from __future__ import annotations

from collections.abc import Mapping

POLICIES = {
    "fifo": "First in, first out: jobs start in the order of their submission.",
    "sjf": "Shortest job first: of the waiting jobs, the one expected to run shortest starts next.",
    "srtf": "Shortest remaining time first: a job that would finish sooner may interrupt a longer one.",
    "srsf": "Shortest remaining service first: like srtf, but counts remaining time times GPUs.",
    "las": "Least attained service (Tiresias): jobs that have used little GPU time so far go first.",
    "gittins": "Gittins index (Tiresias): favours the jobs most likely to finish soon, judging by past jobs.",
    "priority": "Priority classes; waiting jobs rise with age.",
    "drf": "Dominant resource fairness: the tenant with the smallest share of the cluster is served next.",
    "timeslice": "Time slicing (Gandiva): jobs take turns on the GPUs.",
}
BACKFILL = {
    "greedy": " Any later job that fits may go ahead of a blocked one.",
    "easy": " Later jobs may go ahead if they don't delay the first blocked one (EASY backfilling).",
    "conservative": " Later jobs may go ahead if they delay no job before them (conservative backfilling).",
}
PREDICTORS = {
    "oracle": "the policies knew the true durations (an upper bound, not available in practice)",
    "declared": "the policies relied on what users declared",
    "history": "the policies estimated durations from similar past jobs",
    "noisy": "the policies saw the true durations with random errors",
}
PLACEMENTS = {
    "pool": "only the total number of GPUs counts",
    "pack": "jobs are packed onto as few nodes as possible",
    "spread": "jobs are spread over many nodes",
}


def about_policy(policy: str) -> str:
    """What a policy does, as far as its name tells; "" for an unknown one.

    >>> about_policy("fifo(backfill=greedy)")[-54:]
    'Any later job that fits may go ahead of a blocked one.'
    """
    base, _, knobs = policy.partition("(")
    about = POLICIES.get(base, "")
    backfill = next((text for name, text in BACKFILL.items() if f"backfill={name}" in knobs), "")
    return about + (backfill if about else "")


def about_choice(choices: Mapping[str, str], name: str | None) -> str:
    """Name and explanation of a predictor ("noisy:0.3") or a placement."""
    if name is None:
        return ""
    about = choices.get(name.partition(":")[0])
    return f"{name}: {about}" if about else name
