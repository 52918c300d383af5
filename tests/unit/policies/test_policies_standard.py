"""The standard policy, where the scenario cases don't reach."""

from __future__ import annotations

from policy_helpers import ask, fates

STANDARD = "standard(min_run_s=0)"


def test_what_an_eviction_leaves_over_is_offered_to_queues_that_were_asked_before() -> None:
    """b's turn comes first and finds no room; then a's urgent job frees 8 GPUs and takes 2."""
    jobs = {
        "low": ask(0, 1000, 8, tenant="a"),
        "b": ask(10, 50, 1, tenant="b"),
        "high": ask(200, 100, 2, tenant="a", priority=1),
    }
    found = fates(STANDARD, jobs, gpus=8)
    assert (found["high"].start, found["b"].start) == (200, 200)


def test_without_queues_tenants_share_alike() -> None:
    jobs = {f"a{n}": ask(0, 100, 1, tenant="a") for n in range(4)}
    jobs |= {f"b{n}": ask(n, 100, 1, tenant="b") for n in range(1, 3)}
    found = fates(STANDARD, jobs, gpus=2)
    assert [name for name in jobs if found[name].start == 100] == ["a2", "b1"]
    assert [name for name in jobs if found[name].start == 200] == ["a3", "b2"]


def test_nobody_is_started_in_front_of_a_gang_that_was_promised_the_nodes() -> None:
    jobs = {
        "long": ask(0, 100, 1),
        "gang": ask(1, 50, 2),
        "fits": ask(2, 90, 1),
        "delays": ask(2, 110, 1),
    }
    found = fates(STANDARD, jobs, nodes=2, gpus=1)
    assert (found["fits"].start, found["gang"].start, found["delays"].start) == (2, 100, 150)


def test_promises_can_be_left_for_later() -> None:
    jobs = {"long": ask(0, 100, 1), "gang": ask(1, 50, 2), "delays": ask(2, 110, 1)}
    found = fates("standard(min_run_s=0,promise_s=60)", jobs, nodes=2, gpus=1)
    assert (found["delays"].start, found["gang"].start) == (2, 112)
