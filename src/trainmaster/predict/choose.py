"""Predictors by name, as in `--predictor oracle|declared|history|noisy:SIGMA`."""

from __future__ import annotations

from collections.abc import Callable

from trainmaster.model.errors import InputError, nearest
from trainmaster.model.job import Job
from trainmaster.model.ports import Predictor
from trainmaster.predict.predictors import Declared, History, Noisy, Oracle, Speed, reference_speed

PREDICTORS = ("oracle", "declared", "history", "noisy")
"""Names of the predictors."""


def make_predictor(
    name: str, duration: Callable[[Job], int], *, seed: int = 0, speed: Speed = reference_speed
) -> Predictor:
    """A fresh predictor.

    Args:
        name: oracle, declared, history or noisy:SIGMA.
        duration: true run time at reference speed, ns; only oracle and noisy keep it.
        seed: of the noise.
        speed: how placement changes speed.

    Raises:
        InputError: unknown name, or a sigma that isn't a number >= 0.

    >>> make_predictor("noisy:0.3", lambda job: 1).exact
    False
    """
    kind, colon, value = name.partition(":")
    if kind not in PREDICTORS:
        raise InputError(f"unknown predictor {name!r}", mend=nearest(kind, PREDICTORS))
    if kind != "noisy" and colon:
        raise InputError(f"predictor {kind} takes no value, found {name!r}")
    if kind == "oracle":
        return Oracle(duration, speed)
    if kind == "declared":
        return Declared(speed)
    if kind == "history":
        return History(speed)
    try:
        sigma = float(value)
    except ValueError:
        sigma = -1.0
    if not 0 <= sigma < 10:
        raise InputError(
            f"predictor {name!r}: sigma must be a number from 0 to 10", mend="for example noisy:0.3"
        )
    return Noisy(duration, sigma, seed, speed)
