"""When a simulation's states are written, and where."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.metrics.ledger import Ledger
from trainmaster.model.errors import InputError, OutputError
from trainmaster.model.units import LONGEST_S, to_ns
from trainmaster.profiles import Profile
from trainmaster.sim.run import Simulation
from trainmaster.sim.snapshot import file_name, write_snapshot
from trainmaster.traces.trace import Trace


@dataclass
class Saving:
    """When states are written, ns, where, and what their files say of their origin."""

    at: list[int]
    folder: Path
    about: dict[str, Any]

    def keep(self, at: int, simulation: Simulation, ledger: Ledger) -> None:
        """Write the state at `at`."""
        write_snapshot(self.folder / file_name(at), at, simulation, ledger, self.about)


def saving_of(
    at: Sequence[float], folder: str | Path | None, trace: Trace, profile: Profile | None, runs: int
) -> Saving | None:
    """What to save of a simulation; None = nothing.

    Args:
        at: instants of the trace's clock, seconds.
        folder: of the files.
        trace, profile: what the simulation reads.
        runs: how many runs there are.

    Raises:
        InputError: no folder, several runs, or an impossible instant.
    """
    if not at:
        return None
    if folder is None:
        raise InputError("snapshot_at writes files", mend="say where with states=FOLDER")
    if runs > 1:
        mend = "give one policy, one number of nodes and one seed"
        raise InputError(f"states can be written of one run only, and these are {runs}", mend=mend)
    for instant in at:
        if not 0 <= instant <= LONGEST_S:
            raise InputError(f"snapshot at {instant} s", mend=f"give seconds from 0 to {LONGEST_S:g}")
    about = {"trace": trace.path, "profile": "" if profile is None else profile.path, "clock": trace.clock}
    return Saving([to_ns(instant) for instant in at], Path(folder), about)


def move_states(source: Path, folder: Path) -> list[Path]:
    """Move the written states to the result folder; returns where they are.

    Raises:
        OutputError: it can't be written.
    """
    moved = []
    for path in sorted(source.glob("state-*.jsonl")):
        try:
            moved.append(Path(shutil.move(path, folder / path.name)))
        except OSError as error:
            raise OutputError(f"{folder / path.name}: can't be written: {error.strerror}") from None
    return moved
