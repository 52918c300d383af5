"""Readers of profiles, one file per source; each is asked in this order whether a file is its own."""

from __future__ import annotations

from typing import Final

from trainmaster.profiles.readers.base import Reader
from trainmaster.profiles.readers.chronus import ChronusReader
from trainmaster.profiles.readers.gavel import GavelReader
from trainmaster.profiles.readers.native import NativeReader

READERS: Final[tuple[Reader, ...]] = (NativeReader(), ChronusReader(), GavelReader())
