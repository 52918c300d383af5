"""Reasons of queues with known answers; and whom one may ask."""

from __future__ import annotations

from typing import Any

import pytest
from reason_scene import Scene, equal, happening, helps

from trainmaster.core.snapshot import capture
from trainmaster.model.errors import InputError, PolicyError
from trainmaster.model.event import Cancelled
from trainmaster.model.ports import ClusterView, JobView
from trainmaster.model.queues import Queue, QueueTree
from trainmaster.model.reason import MEANINGS, Level, Reason
from trainmaster.policies.base import Policy

# -- what queues say -----------------------------------------------------------------------------------

LAB = QueueTree(
    (
        Queue("lab", limit=8000),
        Queue("vision", "lab", guaranteed=2000),
        Queue("speech", "lab"),
        Queue("ads", guaranteed=4000, reclaim="quota"),
        Queue("guests", reclaim="none"),
    )
)


def test_unknown_queue() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 1, tenant="vison")
    sentence = "may not start: there is no queue 'vison' (did you mean 'vision'?)"
    reason = scene.says("a", Level.QUEUE_UNKNOWN, sentence)
    assert reason.permanent and not reason.hints


def test_more_than_the_limit() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 9, tenant="vision")
    reason = scene.says(
        "a", Level.LIMIT, "may never start: queue lab may hold 8 GPUs at most; the job asks 9"
    )
    assert reason.permanent
    assert helps(reason)["gpus"] == "would start now if it asked 8 instead of 9 GPUs"


def test_full_queue_and_who_stands_behind() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 6, tenant="vision")
    scene.job("b", 4, tenant="speech")
    scene.job("c", 1, tenant="speech")
    sentence = "waits for 4 GPUs on one node; queue lab holds 6 GPUs and may hold 8 GPUs at most"
    reason = scene.says("b", Level.LIMIT, sentence)
    assert not reason.permanent
    assert helps(reason) == {"gpus": "would start now if it asked 2 instead of 4 GPUs"}
    assert happening(reason) == ["would start now if a ended"]
    behind = scene.says("c", Level.ORDER, f"stands behind b, which {sentence}; it is 2nd in its queue")
    assert behind.names == {"behind": "b"} and behind.common == f"stands behind b, which {sentence}"


def test_places_are_counted_in_a_tenants_own_queue() -> None:
    scene = Scene(equal(2, queues=LAB), "standard")
    scene.job("a", 7, tenant="vision")
    scene.job("x", 16, tenant="ads")
    scene.job("b", 2, tenant="speech")
    scene.job("c", 1, tenant="speech")
    scene.job("d", 1, tenant="speech")
    assert [scene.why(name).numbers.get("place") for name in "xbcd"] == [None, None, 2, 3]


def test_who_stands_before_the_limit_waits_for_room() -> None:
    scene = Scene(equal(2, 5, queues=LAB), "standard")
    scene.job("x", 5, tenant="ads")
    scene.job("a", 3, tenant="vision")
    scene.job("b", 3, tenant="speech")
    scene.job("c", 6, tenant="speech")
    assert (scene.why("b").level, scene.why("c").level) == (Level.QUOTA, Level.LIMIT)


def test_within_its_guarantee_it_is_not_the_quota() -> None:
    tree = QueueTree((Queue("x", guaranteed=4000), Queue("y", guaranteed=8000)))
    scene = Scene(equal(1, queues=tree), "standard(min_run_s=0)")
    scene.job("a", 8, tenant="y")
    scene.job("b", 4, at=1, tenant="x")
    assert scene.why("b").level is Level.CAPACITY


def test_whom_nobody_may_stop_is_not_the_quota() -> None:
    tree = QueueTree((Queue("x"), Queue("y")))
    scene = Scene(equal(1, queues=tree), "standard(min_run_s=0)")
    scene.job("a", 8, tenant="y", preemptible=False)
    scene.job("b", 4, at=1, tenant="x")
    assert scene.why("b").level is Level.CAPACITY


def test_guarantee_used_up() -> None:
    scene = Scene(equal(1, queues=LAB), "standard", defaults={"min_run_s": 0.0})
    scene.job("a", 4, tenant="ads")
    scene.job("g", 4, tenant="guests")
    scene.job("b", 2, tenant="ads", at=10)
    scene.says(
        "b",
        Level.QUOTA,
        "waits for 2 GPUs; all 8 GPUs are in use; with this job queue ads, which holds 4 GPUs, would be "
        "above the guarantee of 4 GPUs, so nobody gives way to it; GPUs are kept for it, and expected to be "
        "free at 100 s (in 90 s)",
    )
    scene.job("h", 1, tenant="guests", at=10)
    scene.says(
        "h",
        Level.QUOTA,
        "waits for 1 GPU; all 8 GPUs are in use; queue guests takes nothing back from others",
    )
    scene.job("v", 1, tenant="speech", at=10)
    assert scene.why("v").sentence.endswith("; queue lab is guaranteed none: it gets what others leave")


# -- whom one may ask ----------------------------------------------------------------------------------


class Stubborn(Policy):
    """Starts nobody, in a way of its own."""

    name = "stubborn"
    source = "this test"

    def plan(self, view: ClusterView) -> None:
        """Nothing."""


def test_a_policy_of_ones_own_need_not_say_why() -> None:
    scene = Scene(equal(1), Stubborn)
    scene.job("a", 2)
    scene.says("a", Level.POLICY, "waits although there is room on n0: stubborn does not say why")
    scene.job("b", 9)
    assert scene.why("b").level is Level.NEVER_FITS


class Meddler(Stubborn):
    name = "meddler"

    def explain(self, view: Any, job: JobView) -> Reason:
        view.preempt(job)
        raise AssertionError


class Broken(Stubborn):
    name = "broken"

    def explain(self, view: Any, job: JobView) -> Reason:
        raise KeyError("no idea")


class Uncopied(Stubborn):
    name = "uncopied"

    def compose(self) -> None:
        self.rows = (row for row in range(3))

    def explain(self, view: Any, job: JobView) -> Reason:
        return Reason(Level.CAPACITY, "waits")


class Curious(Stubborn):
    name = "curious"

    def explain(self, view: Any, job: JobView) -> Reason:
        assert len(view.fresh()) == 1 and view.improved() == view.touched() == {0, 1}
        assert [members.head() for members in view.pending_classes] == [job]
        return Reason(Level.CAPACITY, "waits")


def test_a_policy_may_look_at_what_it_reads_only_once() -> None:
    scene = Scene(equal(2), Curious)
    scene.job("a", 2)
    before = capture(scene.engine)
    assert scene.why("a").sentence == scene.why("a").sentence == "waits"
    assert capture(scene.engine) == before
    assert len(scene.engine.state.fresh) == 1


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Meddler, "policy meddler: takes a step while it is asked why a job waits"),
        (Broken, "policy broken: at 0.0 s: KeyError: 'no idea'"),
        (Uncopied, "policy uncopied: at 0.0 s: TypeError: cannot pickle 'generator' object"),
    ],
)
def test_a_policy_that_fails_when_asked(policy: type[Policy], message: str) -> None:
    scene = Scene(equal(1), policy)
    scene.job("a", 2)
    with pytest.raises(PolicyError, match=message):
        scene.why("a")


def test_who_does_not_wait_has_no_reason() -> None:
    scene = Scene(equal(1))
    scene.job("alpha", 8)
    scene.job("beta", 1)
    with pytest.raises(InputError, match="job alpha is running: only a job that waits has a reason to"):
        scene.why("alpha")
    with pytest.raises(InputError, match=r"there is no job 'bet' \(did you mean 'beta'\?\)"):
        scene.why("bet")
    scene.tell(1, Cancelled("beta"))
    assert scene.engine.explain_all() == {}


def test_every_level_has_its_words() -> None:
    assert set(MEANINGS) == set(Level)


def test_json_has_gpus_and_seconds() -> None:
    scene = Scene(equal(1), "fifo(backfill=easy)")
    scene.job("a", 5)
    scene.job("b", 8)
    document = scene.why("b").as_dict()
    assert document["level"] == "capacity" and document["numbers"]["expected_s"] == 100.0
    assert document["hints"] == [
        {
            "change": "gpus",
            "sentence": "would start now if it asked 3 instead of 8 GPUs",
            "numbers": {"asked_gpus": 8, "instead_gpus": 3},
            "names": [],
        },
        {"change": "jobs_end", "sentence": "would start now if a ended", "numbers": {}, "names": ["a"]},
    ]
