"""A profile on a given cluster: the speed of a job on an allocation."""

from __future__ import annotations

from collections.abc import Callable

from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.errors import InputError
from trainmaster.model.job import Job
from trainmaster.profiles.profile import Profile


def speed_on(profile: Profile, cluster: Cluster) -> Callable[[Job, Allocation], float]:
    """The speed function that the simulator and the predictors ask for.

    It counts the distinct nodes of an allocation; a gang runs at the pace of its slowest GPU
    type. It can be pickled.

    Args:
        profile: see `Profile.speed` for jobs and placements that it does not list.
        cluster: the one that the allocations' nodes are indices of: under pooled placement,
            the pooled cluster.

    Raises:
        InputError: a node has a GPU type that the profile does not list; the function itself
            raises it for a job that does not run on the GPUs it was given.

    >>> from trainmaster.model.allocation import Share
    >>> from trainmaster.model.job import Request, Workload
    >>> from trainmaster.profiles import RELATIVE, ModelKey, SpeedTable
    >>> profile = Profile({ModelKey("vgg16"): {"": SpeedTable({4: {1: 1.0, 2: 0.58}})}}, RELATIVE)
    >>> speed = speed_on(profile, Cluster.homogeneous(nodes=2, gpus_per_node=8))
    >>> job = Job("a", 0, 0, Request(gpus=4000), workload=Workload("vgg16"))
    >>> speed(job, Allocation.of([Share(0, 0b11, 2000), Share(1, 0b11, 2000)]))
    0.58
    """
    return _ClusterSpeed(profile, cluster)


class _ClusterSpeed:
    """Remembers every answer: it is asked at each start, and there are few different questions."""

    def __init__(self, profile: Profile, cluster: Cluster) -> None:
        self._profile = profile
        self._types: list[str] = []
        for node in cluster.nodes:
            try:
                self._types.append(profile.gpu_type(node.gpu_type))
            except InputError as error:
                message = f"{error.message}, but node {node.name} has it"
                raise InputError(message, file=error.file, mend=error.mend) from error
        self._known: dict[tuple[str, int | None, int, int, frozenset[str]], float] = {}

    def __call__(self, job: Job, allocation: Allocation) -> float:
        workload = job.workload
        if workload is None:
            return 1.0
        nodes = {share.node for share in allocation.shares}
        types = frozenset([self._types[node] for node in nodes])
        question = (workload.model, workload.batch_size, job.request.gpus, len(nodes), types)
        speed = self._known.get(question)
        if speed is None:
            speed = min(self._profile.speed(job, len(nodes), gpu_type) for gpu_type in sorted(types))
            self._known[question] = speed
        return speed
