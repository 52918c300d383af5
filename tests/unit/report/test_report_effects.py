"""Who waits longer under another policy: groups and jobs, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from test_report_story import jobs, records, run

from trainmaster.report import story
from trainmaster.report.effects import MOST_GROUPS, Effects, effects
from trainmaster.report.jobs import Jobs

NAN = float("nan")
HOUR = 3600.0


def found(before: Jobs, after: Jobs) -> Effects:
    """Effects of going from fifo to srtf."""
    own = records([run("fifo", 9), run("srtf", 1)], [before, after])
    result = effects(own, story.compare(own))
    assert result is not None
    return result


def log(waits: Sequence[float], **columns: object) -> Jobs:
    """Jobs of ann and bob (team a) and cleo (team b), of 1, 4 and 8 GPUs."""
    owned = {
        "tenants": ("a", "b"),
        "tenant": np.array([0, 0, 1, 1]),
        "users": ("ann", "bob", "cleo"),
        "user": np.array([0, 1, 2, 2]),
        "num_gpus": np.array([1.0, 4.0, 8.0, 8.0]),
    }
    return jobs(waits, waits, **(owned | columns))


def shown(result: Effects, kind: str) -> list[tuple[str, int, float, float, str, str]]:
    (group,) = [group for group in result.groups if group.kind == kind]
    return [
        (effect.name, effect.jobs, effect.before_s, effect.after_s, effect.verdict, effect.difference)
        for effect in group.shown
    ]


def test_losers_by_size_tenant_and_user() -> None:
    result = found(log([60, HOUR, HOUR, 3 * HOUR]), log([60, 3 * HOUR, 0, HOUR]))
    assert (result.before, result.after) == ("fifo", "srtf")
    assert result.summary == (
        "Of 4 jobs, 1 (25.0 %) wait longer under srtf than under fifo, 2 (50.0 %) shorter."
    )
    assert shown(result, "size") == [
        ("1 GPU", 1, 60, 60, "same", "0 s"),
        ("2–4 GPUs", 1, HOUR, 3 * HOUR, "worse", "2 h"),
        ("5–8 GPUs", 2, 2 * HOUR, 0.5 * HOUR, "better", "1 h 30 m"),
    ]
    assert shown(result, "tenant") == [
        ("a", 2, 1830, 5430, "worse", "1 h"),
        ("b", 2, 7200, 1800, "better", "1 h 30 m"),
    ]
    assert [row[0] for row in shown(result, "user")] == ["bob", "ann", "cleo"], "the worst first"
    assert [group.title for group in result.groups] == [
        "By size: 1 of 3 waits longer",
        "By tenant: 1 of 2 waits longer",
        "By user: 1 of 3 waits longer",
    ]


def test_the_worst_hit_jobs() -> None:
    before, after = log([60, HOUR, 0, 3 * HOUR]), log([70, 3 * HOUR, 9 * HOUR, HOUR])
    result = found(before, after)
    assert result.labels == ["tenant", "user", "GPUs"]
    assert [(job.name, job.labels, job.difference) for job in result.worst] == [
        ("j2", ("b", "cleo", "8"), "9 h"),
        ("j1", ("a", "bob", "4"), "2 h"),
        ("j0", ("a", "ann", "1"), "10 s"),
    ]
    many = found(jobs([0.0] * 9), jobs([5.0] * 9))
    assert [job.name for job in many.worst] == ["j0", "j1", "j2", "j3", "j4"]


def test_what_no_trace_names_is_left_out() -> None:
    result = found(jobs([1, 2]), jobs([2, 1]))
    assert [group.kind for group in result.groups] == ["size"] and result.labels == ["GPUs"]
    same = {"users": ("a", "b"), "user": np.array([0, 0, 1, 1])}
    result = found(log([1, 2, 3, 4], **same), log([4, 3, 2, 1], **same))
    assert [group.kind for group in result.groups] == ["size", "tenant"], "each user is a tenant of its own"


def test_nobody_loses() -> None:
    result = found(log([60, 70, 80, 90]), log([60.5, 60, 0, 9]))
    assert result.summary == "No job waits longer under srtf than under fifo; 3 (75.0 %) wait shorter."
    assert {group.title for group in result.groups} >= {"By user: none waits longer"}
    assert result.worst == []


def test_only_jobs_that_finish_under_both_count() -> None:
    other = log([1, 2, 30, NAN], ids=("j3", "gone", "j0", "j1"))
    result = found(log([10, 20, NAN, 40]), other)
    assert result.summary.startswith("Of 2 jobs, 1 (50.0 %) wait longer"), "j0 and j3"
    assert [(job.name, job.before_s, job.after_s) for job in result.worst] == [("j0", 10, 30)]
    own = records([run("fifo", 9), run("srtf", 1)], [log([NAN] * 4), log([1, 2, 3, 4])])
    assert effects(own, story.compare(own)) is None
    alone = records([run("fifo", 9)], [log([1, 2, 3, 4])])
    assert effects(alone, story.compare(alone)) is None


@pytest.mark.parametrize(("users", "left_out"), [(MOST_GROUPS, 0), (20, 20 - MOST_GROUPS)])
def test_of_many_users_those_who_lose_most_are_shown(users: int, left_out: int) -> None:
    own = {"users": tuple(f"u{i:02}" for i in range(users)), "user": np.arange(users)}
    result = found(jobs([0.0] * users, **own), jobs([10.0 * i for i in range(users)], **own))
    group = result.groups[-1]
    assert [effect.name for effect in group.shown[:2]] == [f"u{users - 1}", f"u{users - 2}"]
    assert (len(group.shown), group.left_out) == (MOST_GROUPS, left_out)
    assert group.title == f"By user: {users - 1} of {users} wait longer"


def test_the_baseline_may_win() -> None:
    """Then the section tells who would lose under the next best."""
    own = records([run("fifo", 1), run("las", 3), run("srtf", 2)], [log([1, 1, 1, 1])] * 3)
    result = effects(own, story.compare(own))
    assert result is not None and (result.before, result.after) == ("fifo", "srtf")
