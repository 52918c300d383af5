"""Run-time predictors behind one interface (`trainmaster.model.ports.Predictor`).

`Oracle` and `Noisy` are handed the truth by the simulator and serve to compare policies;
`Declared` and `History` use only what a live scheduler knows.
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable
from typing import Any

from trainmaster.model.allocation import Allocation
from trainmaster.model.job import Job
from trainmaster.model.ports import Estimate
from trainmaster.model.units import SECOND

Speed = Callable[[Job, Allocation], float]
"""Progress per unit of time on given GPUs, relative to reference speed."""


def reference_speed(job: Job, allocation: Allocation) -> float:
    """Every placement is equally fast."""
    return 1.0


class Base:
    """What all predictors share.

    Args:
        speed: how placement changes a job's speed, from a profile.
    """

    exact = False

    def __init__(self, speed: Speed = reference_speed) -> None:
        self._speed = speed

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """Total run time; see the port."""
        raise NotImplementedError(type(self).__name__)

    def speed(self, job: Job, allocation: Allocation) -> float:
        """Progress per unit of time on these GPUs."""
        return self._speed(job, allocation)

    def observe(self, job: Job, run_time: int, now: int) -> None:
        """Nothing to learn."""

    def memory(self) -> list[list[Any]]:
        """What it has learned, as plain data for `recall`."""
        return []

    def recall(self, learned: list[list[Any]]) -> None:
        """Know what another predictor of the kind had learned."""


class Oracle(Base):
    """Knows every duration.

    Args:
        duration: the true run time of a job at reference speed, ns.
    """

    exact = True

    def __init__(self, duration: Callable[[Job], int], speed: Speed = reference_speed) -> None:
        super().__init__(speed)
        self._duration = duration

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """The truth."""
        return Estimate(self._duration(job))


class Noisy(Base):
    """The truth times a lognormal error, fixed for each job by the seed.

    Args:
        duration: the true run time of a job, ns.
        sigma: standard deviation of the error's logarithm.
    """

    def __init__(
        self, duration: Callable[[Job], int], sigma: float, seed: int = 0, speed: Speed = reference_speed
    ) -> None:
        super().__init__(speed)
        self._duration = duration
        self._sigma = sigma
        self._seed = seed

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """Truth x exp(N(0, sigma)); past it, twice what it has run."""
        # A generator per job makes the error independent of the order of questions.
        draw = random.Random(zlib.crc32(job.id.encode(errors="surrogatepass")) << 32 | self._seed).gauss(
            0.0, self._sigma
        )
        return Estimate(overrun(round(self._duration(job) * math.exp(draw)), attained), self._sigma)


class Declared(Base):
    """What the user declared (estimate or limit of the run time); where nothing was
    declared, what similar jobs suggest (`History`)."""

    def __init__(self, speed: Speed = reference_speed) -> None:
        super().__init__(speed)
        self._history = History(speed)

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """The declared time, or the history's."""
        if job.declared is None:
            return self._history.predict(job, attained, now)
        return Estimate(overrun(job.declared, attained))

    def observe(self, job: Job, run_time: int, now: int) -> None:
        """Learn for the jobs that declare nothing."""
        self._history.observe(job, run_time, now)

    def memory(self) -> list[list[Any]]:
        """The history's."""
        return self._history.memory()

    def recall(self, learned: list[list[Any]]) -> None:
        """Pass on to the history."""
        self._history.recall(learned)


class History(Base):
    """Similar finished jobs, the recent ones counting more.

    Keeps, for each (user, size), (tenant, size), size, and overall, the mean and variance
    of log run time with exponential forgetting. A group speaks as loudly as it has
    evidence: from the general to the particular, each level's mean is pulled towards the
    level's above by `PRIOR_STRENGTH` imaginary jobs. The first job of all is expected to
    take `FIRST_GUESS`. A job that has outlived its estimate is expected to take the
    median of the same distribution given that it has run so long, and at least twice that
    time, so that a long job is not estimated anew again and again.
    """

    FIRST_GUESS = 1_200 * SECOND
    FIRST_SPREAD = 2.0
    PRIOR_STRENGTH = 2.0
    FORGET = 0.97

    def __init__(self, speed: Speed = reference_speed) -> None:
        super().__init__(speed)
        self._groups: dict[tuple[str, ...], list[float]] = {}
        self._of_kind: dict[tuple[str, str, int], list[list[float]]] = {}

    def predict(self, job: Job, attained: int, now: int) -> Estimate:
        """Median and log-spread of the run time of similar jobs."""
        mean, variance = math.log(self.FIRST_GUESS), self.FIRST_SPREAD**2
        prior = self.PRIOR_STRENGTH
        for weight, total, squares in self._similar(job):
            if not weight:
                continue
            own_mean = total / weight
            own_variance = max(0.0, squares / weight - own_mean * own_mean)
            share = weight / (weight + prior)
            between = share * (1 - share) * (own_mean - mean) ** 2
            mean += share * (own_mean - mean)
            variance = share * own_variance + (1 - share) * variance + between
        spread = max(0.05, math.sqrt(variance))
        total_ns = round(math.exp(mean))
        if attained >= total_ns:
            total_ns = max(_median_beyond(attained, mean, spread), overrun(0, attained))
        if job.declared is not None and attained < job.declared:
            total_ns = min(total_ns, job.declared)
        return Estimate(total_ns, spread)

    def observe(self, job: Job, run_time: int, now: int) -> None:
        """Take a finished job into all its groups."""
        value = math.log(max(run_time, SECOND))
        for group in self._similar(job):
            group[0] = group[0] * self.FORGET + 1.0
            group[1] = group[1] * self.FORGET + value
            group[2] = group[2] * self.FORGET + value * value

    def memory(self) -> list[list[Any]]:
        """[name of the group, weight, sum, sum of squares], for groups with a finished job: a
        line for each user and size, however many jobs there were."""
        return [[list(name), *sums] for name, sums in sorted(self._groups.items()) if sums[0]]

    def recall(self, learned: list[list[Any]]) -> None:
        """Know these groups, and nothing else."""
        self._groups = {tuple(name): [float(each) for each in sums] for name, *sums in learned}
        self._of_kind = {}

    def _similar(self, job: Job) -> list[list[float]]:
        """(weight, sum, sum of squares) of the job's groups, the general ones first."""
        kind = (job.tenant, job.user, job.request.gpus)
        groups = self._of_kind.get(kind)
        if groups is None:
            names = self._names(job)
            groups = self._of_kind[kind] = [self._groups.setdefault(n, [0.0, 0.0, 0.0]) for n in names]
        return groups

    @staticmethod
    def _names(job: Job) -> list[tuple[str, ...]]:
        size = str(job.request.gpus)
        names: list[tuple[str, ...]] = [(), (size,)]
        if job.tenant:
            names.append(("tenant", job.tenant, size))
        if job.user:
            names.append(("user", job.tenant, job.user, size))
        return names


def overrun(total: int, attained: int) -> int:
    """`total`, or twice the attained time once that has passed it.

    >>> overrun(100, 40), overrun(100, 100)
    (100, 200)
    """
    return total if attained < total else max(2 * attained, 1)


def _median_beyond(attained: int, mean: float, spread: float) -> int:
    """Median of a lognormal, given that it exceeds `attained`."""
    from statistics import NormalDist

    normal = NormalDist()
    passed = normal.cdf((math.log(max(attained, 1)) - mean) / spread)
    # So far out in the tail that the conditional median is the attained time itself.
    if passed > 1 - 1e-12:
        return attained
    return round(math.exp(mean + spread * normal.inv_cdf((1 + passed) / 2)))
