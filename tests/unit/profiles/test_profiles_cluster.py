"""A profile on a cluster: what the simulator asks at every start."""

from __future__ import annotations

import pickle

import pytest
from profile_helpers import job

from trainmaster.model.allocation import Allocation, Share
from trainmaster.model.cluster import Cluster, Node
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.profiles import ITERATIONS_PER_SECOND, RELATIVE, ModelKey, Profile, SpeedTable, speed_on

PROFILE = Profile(
    {
        ModelKey("LM"): {
            "V100": SpeedTable({2: {1: 10.0, 2: 8.0}, 4: {1: 20.0, 4: 10.0}}),
            "K80": SpeedTable({2: {1: 5.0, 2: 2.0}, 4: {1: 8.0, 4: 1.0}}),
        },
        # One of those that Gavel found to be faster on the older type.
        ModelKey("Old"): {"V100": SpeedTable({2: {1: 2.0}}), "K80": SpeedTable({2: {1: 3.0}})},
    },
    ITERATIONS_PER_SECOND,
    reference="V100",
)
CLUSTER = Cluster((Node("a", 4, "V100"), Node("b", 4, "v100"), Node("c", 4, "K80"), Node("d", 4)))


def on(*nodes: int) -> Allocation:
    return Allocation.of([Share(node, 1 << place, 1000) for place, node in enumerate(nodes)])


@pytest.mark.parametrize(
    ("nodes", "speed"),
    [
        pytest.param((0, 0), 1.0, id="two shares on one node"),
        pytest.param((0, 1), 0.8, id="two nodes of one type"),
        pytest.param((3, 3), 1.0, id="a node without a type is of the reference type"),
        pytest.param((2, 2), 0.5, id="the slower type"),
        pytest.param((0, 2), 0.2, id="the slowest of the gang"),
        pytest.param((2, 1), 0.2, id="in either order"),
    ],
)
def test_speed_on_allocations(nodes: tuple[int, ...], speed: float) -> None:
    assert speed_on(PROFILE, CLUSTER)(job("LM", 2), on(*nodes)) == speed


def test_the_slowest_type_depends_on_the_model() -> None:
    speed = speed_on(PROFILE, CLUSTER)
    assert speed(job("Old", 2), on(2, 2)) == 1.5
    assert speed(job("Old", 2), on(0, 2)) == 1.0


def test_jobs_without_figures() -> None:
    speed = speed_on(PROFILE, CLUSTER)
    assert speed(job(None, 2), on(0, 2)) == speed(job("X", 2), on(0, 2)) == 1.0


def test_every_question_is_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    original = Profile.speed

    def counting(self: Profile, job: Job, nodes: int, gpu_type: str) -> float:
        asked.append((job.workload, job.request.gpus, nodes, gpu_type))
        return original(self, job, nodes, gpu_type)

    monkeypatch.setattr(Profile, "speed", counting)
    speed = speed_on(PROFILE, CLUSTER)
    questions = [
        (job("LM", 2), on(0, 1)),
        (job("LM", 2, batch_size=5), on(0, 1)),
        (job("LM", 4), on(0, 1)),
        (job("LM", 2), on(0, 0)),
        (job("LM", 2), on(2, 2)),
        (job("Old", 2), on(0, 1)),
    ]
    first = [speed(*question) for question in questions]
    assert len(asked) == len(questions)
    # Other jobs, other nodes, other iterations: the same questions.
    again = [(job("LM", 2, iterations=7, id="b"), on(1, 0)), *questions]
    assert [speed(*question) for question in again] == [first[0], *first]
    assert len(asked) == len(questions)
    assert first == [0.8, 0.8, 0.5, 1.0, 0.5, 1.0]


def test_it_crosses_process_borders() -> None:
    speed = pickle.loads(pickle.dumps(speed_on(PROFILE, CLUSTER)))
    assert speed(job("LM", 2), on(0, 1)) == 0.8


def test_a_pooled_cluster_has_one_placement() -> None:
    speed = speed_on(PROFILE, CLUSTER.as_pool())
    assert speed(job("LM", 4), on(0, 0, 0, 0)) == 1.0


def test_a_type_that_the_profile_does_not_list() -> None:
    cluster = Cluster((Node("a", 4, "V100"), Node("b", 4, "A100")))
    with pytest.raises(InputError, match=r"'A100' is not in the profile, but node b has it \(known: "):
        speed_on(PROFILE, cluster)


def test_a_profile_without_types_fits_any_cluster() -> None:
    profile = Profile({ModelKey("LM"): {"": SpeedTable({2: {1: 1.0, 2: 0.7}})}}, RELATIVE)
    assert speed_on(profile, CLUSTER)(job("LM", 2), on(0, 2)) == 0.7
