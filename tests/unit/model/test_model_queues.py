"""Trees of queues: what is refused, what is found in them, what is doubtful."""

from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.model.errors import InputError
from trainmaster.model.queues import Queue, QueueTree

ORGANIZATION = QueueTree(
    (
        Queue("speech", "research", limit=4_000),
        Queue("research", limit=16_000),
        Queue("vision", "research"),
        Queue("production", guaranteed=32_000),
        Queue("nlp-large", "nlp"),
        Queue("nlp", "research", limit=8_000),
    )
)


def fault(**settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        Queue("q", **settings)
    return str(caught.value)


class TestQueue:
    def test_defaults_promise_and_forbid_nothing(self) -> None:
        queue = Queue("q")
        assert (queue.parent, queue.guaranteed, queue.limit) == (None, 0, None)
        assert (queue.weight, queue.priority, queue.reclaim) == (1, 0, "quota")

    def test_is_frozen(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Queue("q").guaranteed = 1  # type: ignore[misc]

    @pytest.mark.parametrize("what", ["guaranteed", "limit"])
    @pytest.mark.parametrize("value", [-1, 1.0, float("nan"), True, "8"])
    def test_gpus_are_whole_and_not_negative(self, what: str, value: object) -> None:
        assert fault(**{what: value}) == f"queue q: {what} is {value!r} (give whole milli-GPUs >= 0)"

    @pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e-7, 1e10, True, "1"])
    def test_weights_are_finite_and_within_reason(self, value: object) -> None:
        assert (
            fault(weight=value) == f"queue q: weight is {value!r} (give 0, or a number from 1e-06 to 1e+09)"
        )

    @pytest.mark.parametrize("value", [0, 1e-6, 0.1, 9_999_999, 1e9])
    def test_weights_that_are_fine(self, value: float) -> None:
        assert Queue("q", weight=value).weight == value

    def test_priority_and_reclaim(self) -> None:
        assert fault(priority=1.5) == "queue q: priority is 1.5 (give a whole number)"
        assert fault(reclaim="all") == "queue q: reclaim is 'all' (quota, fair-share or none)"

    def test_a_guarantee_above_the_limit(self) -> None:
        assert fault(guaranteed=8_000, limit=7_500).startswith(
            "queue q is guaranteed 8 GPUs, above its limit of 7.5"
        )
        assert Queue("q", guaranteed=8_000, limit=8_000).limit == 8_000

    @pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J"])
    def test_names_are_text_in_one_line(self, name: str) -> None:
        with pytest.raises(InputError, match="is not a name of a queue"):
            Queue(name)


class TestTree:
    def test_paths_lead_up_whatever_the_order(self) -> None:
        def names(name: str) -> list[str]:
            return [queue.name for queue in ORGANIZATION.path(name)]

        assert names("nlp-large") == ["nlp-large", "nlp", "research"]
        assert names("speech") == ["speech", "research"]
        assert names("production") == ["production"]

    def test_roots_leaves_and_children_keep_the_order(self) -> None:
        assert [q.name for q in ORGANIZATION.roots] == ["research", "production"]
        assert [q.name for q in ORGANIZATION.leaves] == ["speech", "vision", "production", "nlp-large"]
        assert [q.name for q in ORGANIZATION.children("research")] == ["speech", "vision", "nlp"]
        assert ORGANIZATION.children(None) == ORGANIZATION.roots
        assert ORGANIZATION.children("vision") == ORGANIZATION.children("nobody") == ()

    def test_looking_up(self) -> None:
        assert ORGANIZATION["vision"] == Queue("vision", "research")
        assert "vision" in ORGANIZATION and "visions" not in ORGANIZATION
        with pytest.raises(InputError, match=r"there is no queue 'visions' \(did you mean 'vision'\?\)"):
            ORGANIZATION["visions"]

    @pytest.mark.parametrize(
        ("queues", "what"),
        [
            ((), "there are no queues (name at least one)"),
            ((Queue("a"), Queue("b"), Queue("a")), "queue a stands twice (make names of queues unique)"),
            (
                (Queue("labs"), Queue("vision", "lab")),
                "queue vision stands below 'lab', which is no queue (did you mean 'labs'?)",
            ),
            ((Queue("a", "a"),), "queues in a circle: a below a (give one of them no parent)"),
            (
                (Queue("r"), Queue("x", "a"), Queue("a", "b"), Queue("b", "c"), Queue("c", "a")),
                "queues in a circle: x below a below b below c below a (give one of them no parent)",
            ),
        ],
    )
    def test_what_is_no_tree(self, queues: tuple[Queue, ...], what: str) -> None:
        with pytest.raises(InputError) as caught:
            QueueTree(queues)
        assert str(caught.value) == what

    @given(st.lists(st.integers(-1, 6), min_size=1, max_size=7), st.randoms(use_true_random=False))
    def test_any_parents_give_a_tree_or_a_refusal(self, parents: list[int], shuffled: Any) -> None:
        queues = [Queue(f"q{i}", None if p < 0 else f"q{p}") for i, p in enumerate(parents)]
        shuffled.shuffle(queues)
        try:
            tree = QueueTree(tuple(queues))
        except InputError:
            assert not _is_forest(parents)
            return
        assert _is_forest(parents)
        for queue in queues:
            path = tree.path(queue.name)
            assert path[0] == queue and path[-1] in tree.roots
            assert all(low in tree.children(high.name) for low, high in itertools.pairwise(path))


def _is_forest(parents: list[int]) -> bool:
    """Whether every way up ends at the top."""
    for start in range(len(parents)):
        here = start
        for _ in parents:
            if here >= len(parents):
                return False
            if here >= 0:
                here = parents[here]
        if here >= 0:
            return False
    return True


class TestRefusal:
    def test_a_leaf_may_start_what_fits_every_limit_above(self) -> None:
        assert ORGANIZATION.refusal("vision") == ""
        assert ORGANIZATION.refusal("vision", 16_000) == ""
        assert ORGANIZATION.refusal("speech", 4_000) == ""

    def test_the_limit_that_forbids_is_named(self) -> None:
        assert (
            ORGANIZATION.refusal("speech", 4_500) == "queue speech may hold 4 GPUs at most; the job asks 4.5"
        )
        assert (
            ORGANIZATION.refusal("vision", 17_000)
            == "queue research may hold 16 GPUs at most; the job asks 17"
        )
        closed = QueueTree((Queue("lab", limit=0), Queue("vision", "lab")))
        assert closed.refusal("vision") == "queue lab may hold 0 GPUs at most"
        assert closed.refusal("vision", 1) == "queue lab may hold 0 GPUs at most; the job asks 0.001"

    def test_who_is_not_in_the_tree_gets_nothing(self) -> None:
        assert ORGANIZATION.refusal("visions") == "there is no queue 'visions' (did you mean 'vision'?)"
        # A group is no name for a job.
        assert "speech" in ORGANIZATION.refusal("reseerch") and "'research'" not in ORGANIZATION.refusal(
            "reseerch"
        )
        assert ORGANIZATION.refusal("") == "the job names no queue, and only jobs of a queue may start"

    def test_a_group_is_no_queue_for_jobs(self) -> None:
        assert (
            ORGANIZATION.refusal("research")
            == "queue research has queues of its own: name one of speech, vision, nlp"
        )


class TestWarnings:
    def warnings(self, *queues: Queue, capacity: int = 64_000) -> list[str]:
        return QueueTree(queues).warnings(capacity)

    def test_nothing_to_say(self) -> None:
        queues = Queue("a", guaranteed=32_000, limit=64_000), Queue("b", "a", guaranteed=32_000), Queue("c")
        assert self.warnings(*queues) == []

    def test_guarantees_beyond_the_cluster(self) -> None:
        queues = Queue("a", guaranteed=32_000), Queue("b", guaranteed=32_500)
        assert self.warnings(*queues) == ["the cluster has 64 GPUs, but a, b are guaranteed 64.5 together"]
        assert self.warnings(*queues, capacity=64_500) == []
        assert self.warnings(queues[1], capacity=500) == [
            "the cluster has 0.5 GPUs, but b is guaranteed 32.5"
        ]

    def test_guarantees_beyond_the_parent(self) -> None:
        queues = Queue("lab", guaranteed=8_000), Queue("x", "lab", guaranteed=6_000)
        assert self.warnings(*queues, Queue("y", "lab", guaranteed=2_001)) == [
            "queue lab is guaranteed 8 GPUs, but x, y are guaranteed 8.001 together"
        ]
        assert self.warnings(*queues, Queue("y", "lab", guaranteed=2_000)) == []

    def test_zero_weights(self) -> None:
        assert self.warnings(Queue("a", weight=0), Queue("b", weight=0, guaranteed=500)) == [
            "queue a has weight 0: it gets only what no other queue wants",
            "queue b has weight 0: beyond its 0.5 guaranteed GPUs it gets only what no other queue wants",
        ]

    def test_limits_that_close_a_queue_or_none(self) -> None:
        assert self.warnings(
            Queue("a", limit=0), Queue("b", limit=999), Queue("c", limit=1_000), Queue("d", limit=64_001)
        ) == [
            "queue a has a limit of 0: none of its jobs can ever start",
            "queue b has a limit of 0.999 GPUs: only jobs on a part of a GPU can start",
            "queue d has a limit of 64.001 GPUs, which the 64 of the cluster never reach",
        ]
