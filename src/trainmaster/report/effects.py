"""Who waits longer, and who shorter, when the baseline gives way to another policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from . import text
from .jobs import Floats, Ints, Jobs
from .records import Records, Run
from .sizes import SIZES, size_class
from .story import Comparison

MOST_GROUPS = 12
MOST_JOBS = 5
LEAST_S = 1.0
"""Smaller differences are no difference."""


@dataclass(frozen=True)
class Effect:
    """The wait of a job, or the mean wait of a group of jobs, before and after; seconds.

    >>> Effect("ann", 3, 60.0, 90.0).verdict, Effect("bob", 3, 60.0, 60.5).verdict
    ('worse', 'same')
    """

    name: str
    jobs: int
    before_s: float
    after_s: float
    labels: tuple[str, ...] = ()

    @property
    def change_s(self) -> float:
        return self.after_s - self.before_s

    @property
    def verdict(self) -> str:
        alike = text.duration(self.before_s) == text.duration(self.after_s)
        if alike or abs(self.change_s) <= LEAST_S:
            return "same"
        return "worse" if self.change_s > 0 else "better"

    @property
    def difference(self) -> str:
        """How much longer or shorter the wait becomes.

        >>> Effect("ann", 3, 60.0, 90.0).difference
        '30 s'
        """
        return text.duration(abs(self.change_s))


@dataclass(frozen=True)
class Group:
    """The effects on all groups of a kind."""

    kind: str
    effects: Sequence[Effect]

    @property
    def title(self) -> str:
        """How many lose.

        >>> Group("user", [Effect("ann", 3, 60.0, 90.0), Effect("bob", 3, 90.0, 60.0)]).title
        'By user: 1 of 2 waits longer'
        """
        worse = sum(effect.verdict == "worse" for effect in self.effects)
        if not worse:
            return f"By {self.kind}: none waits longer"
        verb = "waits" if worse == 1 else "wait"
        return f"By {self.kind}: {text.count(worse)} of {text.count(len(self.effects))} {verb} longer"

    @property
    def shown(self) -> Sequence[Effect]:
        """Sizes in their order; of tenants and users those that lose most, most first."""
        if self.kind == "size":
            return self.effects
        return sorted(self.effects, key=lambda effect: (-effect.change_s, effect.name))[:MOST_GROUPS]

    @property
    def left_out(self) -> int:
        return len(self.effects) - len(self.shown)


@dataclass(frozen=True)
class Effects:
    """The whole section.

    Args:
        before, after: the policies.
        summary: how many jobs wait longer.
        worst: the jobs whose wait grows most; `labels` are tenant, user and GPUs.
        labels: headings of these, as far as the trace tells.
    """

    before: str
    after: str
    summary: str
    groups: Sequence[Group]
    worst: Sequence[Effect]
    labels: Sequence[str]


@dataclass(frozen=True)
class Pairs:
    """The jobs that finish under both policies: their rows in `jobs`, and how long they wait."""

    jobs: Jobs
    rows: Ints
    before_s: Floats
    after_s: Floats

    @property
    def change_s(self) -> Floats:
        return self.after_s - self.before_s

    def by(self, names: Sequence[str], codes: Ints) -> list[Effect]:
        """Effects by group, in the order of the groups' names; `codes` has an index into them by row."""
        own = codes[self.rows]
        amounts = np.bincount(own, minlength=len(names)).tolist()
        before, after = (
            np.bincount(own, weights=waits, minlength=len(names)).tolist()
            for waits in (self.before_s, self.after_s)
        )
        return [
            Effect(name or "(no name)", amount, before[code] / amount, after[code] / amount)
            for code, (name, amount) in enumerate(zip(names, amounts, strict=True))
            if amount
        ]


def effects(records: Records, comparison: Comparison) -> Effects | None:
    """Waits under the baseline and under its rival; None where nothing is compared."""
    if comparison.rival is None:
        return None
    pairs = pair(records, comparison.baseline, comparison.rival)
    if not pairs.rows.size:
        return None
    jobs = pairs.jobs
    classes = np.array([size_class(size) for size in jobs.num_gpus.tolist()], dtype=np.int64)
    groups = [Group("size", pairs.by([name for _, name in SIZES], classes))]
    labels = []
    for kind, names, codes in (("tenant", jobs.tenants, jobs.tenant), ("user", jobs.users, jobs.user)):
        found = pairs.by(names, codes)
        if len(found) > 1 and all(found != group.effects for group in groups):
            groups.append(Group(kind, found))
            labels.append(kind)
    labels.append("GPUs")
    return Effects(
        before=comparison.baseline.policy,
        after=comparison.rival.policy,
        summary=_summary(pairs, comparison.baseline.policy, comparison.rival.policy),
        groups=groups,
        worst=_worst(pairs, labels),
        labels=labels,
    )


def pair(records: Records, before: Run, after: Run) -> Pairs:
    """The jobs that finish under both policies."""
    old, new = records.jobs[before.key], records.jobs[after.key]
    reference = old.wait_s if old.ids == new.ids else np.append(old.wait_s, np.nan)[old.rows_of(new.ids)]
    rows = np.flatnonzero(np.isfinite(reference) & np.isfinite(new.wait_s))
    return Pairs(new, rows, reference[rows], new.wait_s[rows])


def _summary(pairs: Pairs, before: str, after: str) -> str:
    longer, shorter = (int(np.sum(sign * pairs.change_s > LEAST_S)) for sign in (1, -1))
    total = pairs.rows.size
    less = f"{text.count(shorter)} ({text.percent(shorter / total)})"
    if not longer:
        return f"No job waits longer under {after} than under {before}; {less} wait shorter."
    more = f"{text.count(longer)} ({text.percent(longer / total)})"
    waits = f"{more} wait longer under {after} than under {before}, {less} shorter"
    return f"Of {text.plural(total, 'job')}, {waits}."


def _worst(pairs: Pairs, labels: Sequence[str]) -> list[Effect]:
    jobs = pairs.jobs
    tell: dict[str, Callable[[int], str]] = {
        "tenant": lambda row: jobs.tenants[jobs.tenant[row]],
        "user": lambda row: jobs.users[jobs.user[row]],
        "GPUs": lambda row: text.gpus(float(jobs.num_gpus[row])),
    }
    order = np.argsort(-pairs.change_s, kind="stable")[:MOST_JOBS].tolist()
    found = []
    for at in order:
        if pairs.change_s[at] > LEAST_S:
            row = int(pairs.rows[at])
            before, after = float(pairs.before_s[at]), float(pairs.after_s[at])
            found.append(Effect(jobs.ids[row], 1, before, after, tuple(tell[label](row) for label in labels)))
    return found
