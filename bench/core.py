"""The suite of `make bench`: the simulator's exactness and speed."""

from __future__ import annotations

import determinism
import forecast
import known
import speed
import standard
import testbed
from support import Suite

SUITE = Suite("core")
known.add(SUITE)
speed.add_replays(SUITE)
speed.add_growth(SUITE)
speed.add_parallel(SUITE)
speed.add_start(SUITE)
testbed.add(SUITE)
determinism.add(SUITE)
speed.add_peers(SUITE)
speed.add_reading(SUITE)
speed.add_decisions(SUITE)
standard.add(SUITE)
forecast.add(SUITE)
