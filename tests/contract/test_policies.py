"""Every built-in policy keeps the contract; policies that don't are found out."""

from __future__ import annotations

import random
import time
from datetime import datetime
from functools import partial
from typing import ClassVar

import pytest

from trainmaster.model.errors import PolicyError
from trainmaster.model.ports import ClusterView, JobView, Phase
from trainmaster.policies import Knob, Policy
from trainmaster.policies.drf import Drf
from trainmaster.policies.fifo import Fifo
from trainmaster.policies.gittins import Gittins
from trainmaster.policies.las import Las
from trainmaster.policies.parts.ordering import Order, rank
from trainmaster.policies.priority import Priority
from trainmaster.policies.registry import BUILT_IN, policy_class
from trainmaster.policies.sjf import Sjf
from trainmaster.policies.srsf import Srsf
from trainmaster.policies.srtf import Srtf
from trainmaster.policies.timeslice import Timeslice
from trainmaster.testing import PolicyContract


class TestFifo(PolicyContract):
    policy = Fifo


class TestFifoGreedy(PolicyContract):
    policy = partial(Fifo, backfill="greedy")


class TestFifoEasy(PolicyContract):
    policy = partial(Fifo, backfill="easy")


class TestFifoConservative(PolicyContract):
    policy = partial(Fifo, backfill="conservative")


class TestSjf(PolicyContract):
    policy = Sjf


class TestSrtf(PolicyContract):
    policy = Srtf


class TestSrsf(PolicyContract):
    policy = Srsf


class TestLas(PolicyContract):
    policy = Las


class TestLasWithDemotions(PolicyContract):
    policy = partial(Las, queues=4, limit=300, factor=3)


class TestGittins(PolicyContract):
    policy = partial(Gittins, refresh_every=5, first_limit=60)


class TestPriority(PolicyContract):
    policy = Priority


class TestPriorityWithoutAgeing(PolicyContract):
    policy = partial(Priority, ageing_s=0)


class TestDrf(PolicyContract):
    policy = Drf


class TestTimeslice(PolicyContract):
    policy = partial(Timeslice, quantum_s=120)


class TestInRounds(PolicyContract):
    @staticmethod
    def policy(**arguments: object) -> Policy:
        return Srtf(**{"round_s": 60, **arguments})  # type: ignore[arg-type]


CONTRACTS = [found for name, found in sorted(globals().items()) if name.startswith("Test")]


def test_no_built_in_policy_is_left_out() -> None:
    covered = {type(contract().make()) for contract in CONTRACTS}
    assert covered == {policy_class(name) for name in BUILT_IN}
