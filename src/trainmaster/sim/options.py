"""What a simulation can be asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import float_info

from trainmaster.model.errors import InputError
from trainmaster.model.numbers import real
from trainmaster.model.units import LONGEST_S


@dataclass(frozen=True, slots=True)
class Costs:
    """Time that starting and stopping take, seconds; GPUs are held meanwhile.

    Args:
        checkpoint_s: from the request to stop until the GPUs are free.
        restore_s: from the request to start a job that ran before until it goes on.
        start_s: the same for a job's first start.
        checkpoint_interval_s: a running job saves its work this often (at no cost);
            what came after the last time is lost with a node.

    Raises:
        InputError: a negative cost.
    """

    checkpoint_s: float = 6.0
    restore_s: float = 24.0
    start_s: float = 0.0
    checkpoint_interval_s: float = 1_800.0

    def __post_init__(self) -> None:
        for name in ("checkpoint_s", "restore_s", "start_s", "checkpoint_interval_s"):
            mend = f"give seconds from 0 to {LONGEST_S:g}"
            _set(self, name, real(getattr(self, name), name, 0, LONGEST_S, mend))
        if self.checkpoint_interval_s == 0:
            raise InputError("checkpoint_interval_s is 0", mend="give seconds > 0")

    @property
    def free(self) -> bool:
        """Whether starting and stopping cost nothing."""
        return self.checkpoint_s == self.restore_s == self.start_s == 0.0


@dataclass(frozen=True, slots=True)
class Options:
    """How to simulate; see `trainmaster.simulate`.

    Args:
        predictor: oracle, declared, history or noisy:SIGMA.
        placement: pool, pack or spread.
        relax_s: waiting time after which a job accepts any nodes; None = never.
        costs: of starting and stopping.
        warmup_s, cooldown_s: jobs submitted so soon after the first or so shortly
            before the last submission are simulated but not counted.
        validate: re-check all invariants after each instant.
        knobs: by policy name.
        weights: entitlement by tenant; 1 where nothing is said.
    """

    predictor: str = "history"
    placement: str = "pack"
    relax_s: float | None = None
    costs: Costs = field(default_factory=Costs)
    warmup_s: float = 0.0
    cooldown_s: float = 0.0
    validate: bool = False
    knobs: dict[str, dict[str, object]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.placement not in ("pool", "pack", "spread"):
            raise InputError(f"unknown placement {self.placement!r}", mend="pool, pack or spread")
        costs = "tm.Costs(checkpoint_s=6, restore_s=24, start_s=0, checkpoint_interval_s=1800)"
        kinds = (
            ("predictor", str, "give its name"),
            ("costs", Costs, costs),
            ("validate", bool, "True or False"),
        )
        for name, kind, mend in kinds:
            if not isinstance(getattr(self, name), kind):
                raise InputError(f"{name} is {getattr(self, name)!r:.60}", mend=mend)
        for name in ("warmup_s", "cooldown_s"):
            number = real(getattr(self, name), name, 0, float_info.max, "give seconds >= 0")
            _set(self, name, number)
        if self.relax_s is not None:
            number = real(self.relax_s, "placement.relax", 0, LONGEST_S, "give seconds >= 0")
            _set(self, "relax_s", number)
        if not _by_text(self.knobs) or not all(map(_by_text, self.knobs.values())):
            mend = "{'fifo': {'backfill': 'easy'}}"
            raise InputError(f"knobs is {self.knobs!r:.60}, not knobs by policy", mend=mend)
        if not _by_text(self.weights):
            raise InputError(f"weights is {self.weights!r:.60}", mend="give numbers by tenant: {'red': 2}")
        for tenant, weight in self.weights.items():
            real(weight, f"weight of tenant {tenant!r}", 1e-6, 1e6, "give numbers from 1e-6 to 1e6")


def _by_text(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


_set = object.__setattr__
