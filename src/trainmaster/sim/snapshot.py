"""States of a simulation in files of JSON lines, and simulations that go on from them.

Each line is an object of one `kind`: the state as a whole (the first line), the cluster, what the
engine was about to do, classes and jobs, what policy and predictor remember, the processes of the
virtual cluster (only a simulator knows these), what was announced, and the jobs of the past week.
The last line counts the lines, so that a file that was cut off is refused. docs/forecast.md tells
what the keys mean.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from trainmaster._version import __version__
from trainmaster.core.snapshot import capture, restore
from trainmaster.metrics.ledger import NEVER, Ledger
from trainmaster.model.allocation import Allocation
from trainmaster.model.cluster import Cluster
from trainmaster.model.encoding import build, build_cluster, plain, plain_cluster
from trainmaster.model.errors import InputError, OutputError, TrainmasterError, nearest
from trainmaster.model.job import Job
from trainmaster.model.ports import Phase
from trainmaster.model.units import SECOND
from trainmaster.policies.registry import title_of
from trainmaster.sim.options import Costs, Options
from trainmaster.sim.run import Setup, Simulation, policy_of, rare_collections

SCHEMA: Final = 1
"""Version of the format."""

WEEK: Final = 7 * 86_400 * SECOND

REQUIRED: Final[dict[str, tuple[str, ...]]] = {
    "state": ("schema", "now", "policy", "options", "seed", "arrived"),
    "cluster": ("nodes",),
    "engine": ("now", "decisions", "queued", "running", "holders"),
    "class": ("request", "tenant", "relaxed", "apart"),
    "job": ("job", "phase"),
    "memory": ("memory",),
    "learned": ("group",),
    "process": ("job", "work"),
    "event": ("event", "of"),
    "past": ("job",),
    "end": ("lines",),
}
"""Kinds of lines, and the keys that each must have."""

ONCE = ("state", "cluster", "engine", "memory", "end")


@dataclass(frozen=True, slots=True)
class Past:
    """A job of the past week.

    Args:
        job: as submitted.
        ran: how long it ran in all, ns; None = it has not finished.
        ended: when it finished, ns.
    """

    job: Job
    ran: int | None = None
    ended: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """What a state file says.

    Args:
        path: of the file; "" = none.
        now: the instant, ns; all that happened at it is in the state.
        policy, options, seed: what the simulation was made of.
        cluster: as the engine knows it: pooled where only the number of GPUs counts.
        arrived: how many jobs had been submitted.
        about: where it comes from: files of trace and speed profile, dates of the clock.
        state: see `trainmaster.core.snapshot.capture`.
        executor: processes and announced events; see `VirtualCluster.capture`.
        jobs: those in the system, by id.
        past: jobs submitted in the week before, in order.
    """

    path: str
    now: int
    policy: str
    options: Options
    seed: int
    cluster: Cluster
    arrived: int
    about: dict[str, Any]
    state: dict[str, Any]
    executor: dict[str, list[dict[str, Any]]]
    jobs: dict[str, Job]
    past: tuple[Past, ...]

    def pending(self) -> list[dict[str, Any]]:
        """Entries of the jobs that wait for GPUs, in order of submission."""
        waiting = (Phase.PENDING.value, Phase.NOMINATED.value)
        return [entry for entry in self.state["jobs"] if entry["phase"] in waiting]

    @property
    def works(self) -> dict[int, int]:
        """How long the jobs in the system will really run, ns, by sequence: known to simulators only."""
        return {self.jobs[each["job"]].sequence: each["work"] for each in self.executor["processes"]}

    def restored(
        self,
        durations: Mapping[int, int] | Sequence[int] | None = None,
        arrivals: list[Job] | None = None,
        *,
        executor: Mapping[str, list[dict[str, Any]]] | None = None,
        setup: Setup | None = None,
    ) -> Simulation:
        """A simulation in this state.

        Args:
            durations: true run time, ns, by the jobs' sequence; by default that of the file.
            arrivals: jobs that are still to come, in order of submission; by default none.
            executor: processes and events, if not those of the file.
            setup: of the simulation, if it is at hand.

        Raises:
            InputError: the file contradicts itself; names the line.
        """
        durations = durations or self.works
        arrivals = [] if arrivals is None else arrivals
        if setup is None:
            setup = Setup(arrivals, durations, self.cluster, self.policy, self.options, self.seed)
        simulation = Simulation(setup, policy_of(setup.policy, setup.options), arrivals)
        try:
            restore(simulation.engine, self.state, self.jobs)
            states = simulation.engine.state.jobs
            jobs = {name: (self.jobs[name], _occupied(states[name])) for name in states}
            simulation.executor.restore(executor or self.executor, jobs)
        except InputError as error:
            raise InputError(
                error.message, file=self.path or None, row=error.row, column=error.column, mend=error.mend
            ) from None
        except TrainmasterError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            what = f"the state can't be restored: {type(error).__name__}: {error}"
            raise InputError(what, file=self.path or None, mend="take a new snapshot") from None
        return simulation

    def resume(self, setup: Setup) -> Simulation:
        """The simulation that the snapshot was taken of, as if it had not been interrupted.

        Args:
            setup: that of the whole simulation.
        """
        simulation = self.restored(setup.durations, setup.jobs[self.arrived :], setup=setup)
        for at, event in setup.failures:
            if at > self.now:
                simulation.clock.announce(at, event)
        return simulation


def _occupied(job: Any) -> Allocation | None:
    """The GPUs that a job's process sits on."""
    found: Allocation | None = None if job.phase is Phase.NOMINATED else job.allocation
    return found


# -- writing ------------------------------------------------------------------------------------


def file_name(at: int) -> str:
    """Name of the file of a state.

    >>> file_name(200_000 * 10**9)
    'state-200000.jsonl'
    """
    return f"state-{at / SECOND:.12g}.jsonl"


def write_snapshot(
    path: Path,
    at: int,
    simulation: Simulation,
    ledger: Ledger | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write the state of a simulation between two instants.

    Args:
        path: of the file.
        at: the instant, ns.
        simulation: it is left as it is.
        ledger: tells of the past week; None = no past is known.
        about: what else readers may want to know: trace, profile, clock.

    Raises:
        OutputError: the file can't be written.
    """
    try:
        with path.open("w", encoding="utf-8") as file:
            for line in lines(at, simulation, ledger, about):
                file.write(line + "\n")
    except OSError as error:
        raise OutputError(f"{path}: can't be written: {error.strerror}") from None


def lines(
    at: int,
    simulation: Simulation,
    ledger: Ledger | None = None,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """The lines of a state file; see `write_snapshot`."""
    found = [json.dumps(entry, allow_nan=False) for entry in _entries(at, simulation, ledger, about)]
    return [*found, json.dumps({"kind": "end", "lines": len(found) + 1})]


def _entries(
    at: int, simulation: Simulation, ledger: Ledger | None, about: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    setup = simulation.setup
    policy = setup.policy if isinstance(setup.policy, str) else title_of(setup.policy)
    yield {
        "kind": "state",
        "schema": SCHEMA,
        "trainmaster": __version__,
        "now": at,
        "policy": policy,
        "seed": setup.seed,
        "options": asdict(setup.options),
        "arrived": len(setup.jobs) - simulation.clock.arrivals_left,
        "about": dict(about),
    }
    yield {"kind": "cluster", **plain_cluster(simulation.cluster)}
    state = capture(simulation.engine)
    if state["engine"]["random"] == _unused(setup.seed):
        del state["engine"]["random"]
    yield {"kind": "engine", **state["engine"]}
    yield {"kind": "memory", "memory": state["memory"]}
    yield from ({"kind": "learned", "group": group} for group in state["learned"])
    yield from ({"kind": "class", **entry} for entry in state["classes"])
    yield from ({"kind": "job", **entry} for entry in state["jobs"])
    captured = simulation.executor.capture()
    yield from ({"kind": "process", **entry} for entry in captured["processes"])
    yield from ({"kind": "event", **entry} for entry in captured["events"])
    if ledger is not None:
        yield from _past(at, ledger, simulation.engine.state.jobs)


def _unused(seed: int) -> list[Any]:
    version, internal, gauss = random.Random(seed).getstate()
    return [version, list(internal), gauss]


def _past(now: int, ledger: Ledger, present: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    first = len(ledger.jobs)
    while first and ledger.jobs[first - 1].submit > now - WEEK:
        first -= 1
    for row in range(first, len(ledger.jobs)):
        job = ledger.jobs[row]
        entry: dict[str, Any] = {"kind": "past", "job": {"id": job.id} if job.id in present else plain(job)}
        if ledger.finish[row] != NEVER and ledger.status[row] == "finished":
            entry |= {"ran": ledger.run[row], "ended": ledger.finish[row]}
        yield entry


# -- reading ------------------------------------------------------------------------------------


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a state file.

    Raises:
        InputError: it isn't one, is of an unknown version, or was cut off; names the line.
    """
    try:
        with Path(path).open(encoding="utf-8") as file, rare_collections():
            return parse(file, str(path))
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None


_MEND = "give a file that `simulate --snapshot-at` wrote"


def parse(text: Iterable[str], path: str = "") -> Snapshot:
    """A snapshot from the lines of its file; see `read_snapshot`."""
    try:
        return _snapshot(_by_kind(text), path)
    except InputError as error:
        raise InputError(
            error.message, file=path or None, row=error.row, column=error.column, mend=error.mend
        ) from None
    except UnicodeDecodeError:
        raise InputError("is not text", file=path or None, mend=_MEND) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"can't be read: {type(error).__name__}: {error}"
        raise InputError(what, file=path or None, mend=_MEND) from None


def _by_kind(text: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in REQUIRED}
    number = 0
    for number, line in enumerate(text, start=1):
        entry = _entry(line, number)
        kind = entry.pop("kind")
        if (kind == "state") != (number == 1) or (kind in ONCE and found[kind]):
            raise InputError(f"a line of kind {kind} stands here", row=number, mend=_MEND)
        if kind == "state" and entry["schema"] != SCHEMA:
            what = f"is a state of version {entry['schema']!r}; this program reads version {SCHEMA}"
            raise InputError(what, row=number, column="schema", mend="take the snapshot with this version")
        if found["end"]:
            raise InputError("lines follow the last one", row=number, mend=_MEND)
        entry["line"] = number
        found[kind].append(entry)
    if not number:
        raise InputError("is empty", mend=_MEND)
    if not found["end"] or found["end"][0]["lines"] != number:
        raise InputError(f"is cut off after line {number}", row=number, mend="take the snapshot again")
    missing = next((kind for kind in ONCE if not found[kind]), None)
    if missing is not None:
        raise InputError(f"has no line of kind {missing}", mend=_MEND)
    return found


def _entry(line: str, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        mend = _MEND if number == 1 else "take the snapshot again"
        raise InputError("is no JSON object", row=number, mend=mend) from None
    if not isinstance(entry, dict) or entry.get("kind") not in REQUIRED:
        kind = entry.get("kind") if isinstance(entry, dict) else None
        what = "is no line of a state" if kind is None else f"unknown kind {kind!r:.60}"
        raise InputError(what, row=number, mend=_MEND if kind is None else nearest(str(kind), REQUIRED))
    missing = next((key for key in REQUIRED[entry["kind"]] if key not in entry), None)
    if missing is not None:
        raise InputError(f"{missing} is missing", row=number, column=missing, mend=_MEND)
    return entry


def _snapshot(found: dict[str, list[dict[str, Any]]], path: str) -> Snapshot:
    header = found["state"][0]
    jobs: dict[str, Job] = {}
    for entry in found["job"]:
        job = _job(entry)
        if job.id in jobs:
            raise InputError(f"job {job.id} stands twice", row=entry["line"], mend="leave one out")
        jobs[job.id] = job
    for kind in ("process", "event"):
        for entry in found[kind]:
            name = entry["job"] if kind == "process" else entry["of"]
            if name is not None and name not in jobs:
                raise InputError(f"job {name} has no line", row=entry["line"], mend="take a new snapshot")
    options = dict(header["options"])
    options["costs"] = Costs(**options["costs"])
    return Snapshot(
        path=path,
        now=header["now"],
        policy=header["policy"],
        options=Options(**options),
        seed=header["seed"],
        cluster=_cluster(found["cluster"][0]),
        arrived=header["arrived"],
        about=header.get("about", {}),
        state={
            "engine": found["engine"][0],
            "classes": found["class"],
            "jobs": found["job"],
            "memory": found["memory"][0]["memory"],
            "learned": [entry["group"] for entry in found["learned"]],
        },
        executor={"processes": found["process"], "events": found["event"]},
        jobs=jobs,
        past=tuple(_past_job(entry, jobs) for entry in found["past"]),
    )


def _job(entry: Mapping[str, Any]) -> Job:
    try:
        return build(Job, entry["job"])
    except InputError as error:
        raise InputError(error.message, row=entry["line"], column=error.column, mend=error.mend) from None


def _past_job(entry: Mapping[str, Any], jobs: Mapping[str, Job]) -> Past:
    present = jobs.get(entry["job"].get("id", "")) if isinstance(entry["job"], dict) else None
    return Past(present or _job(entry), entry.get("ran"), entry.get("ended"))


def _cluster(entry: Mapping[str, Any]) -> Cluster:
    try:
        return build_cluster(entry)
    except InputError as error:
        raise InputError(error.message, row=entry["line"], column=error.column, mend=error.mend) from None
