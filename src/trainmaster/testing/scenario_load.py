"""A case from its file; see docs/cases.md for the format."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from trainmaster.model.errors import nearest
from trainmaster.model.units import to_seconds
from trainmaster.testing.scenario_cluster import ClusterOf
from trainmaster.testing.scenario_keys import (
    FINALLY,
    INHERITED,
    JOB,
    KINDS,
    MOMENT,
    STEP,
    VERBS,
)
from trainmaster.testing.scenario_kinds import fields, needs
from trainmaster.testing.scenario_model import (
    GROUPS,
    PARTLY,
    AnyScene,
    Case,
    CaseJob,
    Moment,
    ProcessScene,
    ReaderScene,
    Scene,
    Situation,
    Step,
)
from trainmaster.testing.scenario_yaml import Value, read

_JOB_EXTRAS = tuple(key.name for key in JOB if key.needs)


def load(path: str | Path) -> Case:
    """Read a case file.

    Raises:
        InputError: names the file, the line and the key.
    """
    path = Path(path)
    documents = read(path)
    first = dict(documents[0].items())
    parts = [_part(documents[0], {}, path)]
    for document in documents[1:]:
        own = dict(document.items())
        if "number" in own:
            raise own["number"].fault("only the first part of a file has a number")
        parts.append(_part(document, _inherited(first, own), path))
    number = first["number"].name() if "number" in first else ""
    return Case(path, number, parts[0].title, tuple(parts))


def _inherited(first: Mapping[str, Value], own: Mapping[str, Value]) -> dict[str, Value]:
    """What a later part takes from the first: all but what happens and what must come of it."""
    kinds = [part["kind"].name() if "kind" in part else "cluster" for part in (first, own)]
    if "kind" in own and kinds[0] != kinds[1]:
        return {}
    kept = (*INHERITED, "files", "read", "format", "run", "environments")
    return {key: first[key] for key in kept if key in first and key not in ("number", "title", "story")}


def _part(document: Value, inherited: Mapping[str, Value], path: Path) -> AnyScene:
    given = {**inherited, **dict(document.items())}
    kind = given["kind"].choice(tuple(KINDS)) if "kind" in given else "cluster"
    found = fields(document, KINDS[kind], inherited=inherited)
    wanted = [*found.get("needs", ()), *needs(found, KINDS[kind])]
    if kind == "reader":
        title, form = found["title"].strip(), found.get("format", "auto")
        return ReaderScene(title, found["files"], found["read"], form, found["expect"], _sorted(wanted))
    if kind == "process":
        return _process(given["run"], found, wanted)
    return _ClusterPart(found, wanted, path).scene()


def _sorted(names: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _process(run: Value, found: dict[str, Any], wanted: list[str]) -> ProcessScene:
    try:
        words = shlex.split(found["run"])
    except ValueError as error:
        raise run.fault(f"can't be split into words: {error}") from None
    if words[:1] != ["trainmaster"]:
        raise run.fault("not a command of trainmaster", "run: trainmaster simulate …")
    environments = found.get("environments", ({}, {}))
    expect = {"exit": 0, **found["expect"]}
    return ProcessScene(
        found["title"].strip(),
        found.get("files", {}),
        tuple(words[1:]),
        environments,
        expect,
        _sorted(wanted),
    )


class _ClusterPart:
    """Reads one part about a cluster; collects what it needs on the way."""

    def __init__(self, found: dict[str, Any], wanted: list[str], path: Path) -> None:
        self.found = found
        self.wanted = wanted
        self.path = path
        self.names: dict[str, Collection[str]] = {"states": (*GROUPS, PARTLY)}
        self.groups: dict[str, tuple[str, ...]] = {}

    def scene(self) -> Scene:
        """All of it."""
        found = self.found
        built = ClusterOf(self.path, self.wanted)
        cluster = built.cluster(found["cluster"], found.get("queues"), found.get("reclaim", "quota"))
        if cluster.queues is not None:
            self.names["queues"] = [queue.name for queue in cluster.queues.queues]
        jobs = self._jobs(found["jobs"])
        self.names.setdefault("queues", [job.queue for job in jobs])
        self.names["nodes"] = cluster.names
        self.names["jobs"] = {**dict.fromkeys(job.name for job in jobs), **self.groups}
        costs = {f"{name}_s": to_seconds(at) for name, at in found.get("costs", {}).items()}
        plain = {key: found[key] for key in ("min_run", "round", "relax", "seed", "until") if key in found}
        if not found.get("migration", True) and "migration" in self.wanted:
            self.wanted.remove("migration")
        steps = tuple(map(self._step, _entries(found.get("steps"))))
        moments = self._moments()
        never = tuple(map(self._situation, _entries(found.get("never"))))
        return Scene(
            title=found["title"].strip(),
            cluster=cluster,
            jobs=jobs,
            policies=found.get("policies", ()),
            placements=found.get("placement", ("pack",)),
            predictor=found.get("predictor", "oracle"),
            costs=costs,
            groups=self.groups,
            weights=built.weights,
            steps=steps,
            moments=moments,
            never=never,
            needs=_sorted(self.wanted),
            **plain,
        )

    # -- jobs -----------------------------------------------------------------------------------

    def _jobs(self, value: Value) -> tuple[CaseJob, ...]:
        jobs: list[CaseJob] = []
        lines: dict[str, Value] = {}
        for group, entry in value.items():
            copies = self._copies(group, entry)
            for job in copies:
                if job.name in lines:
                    raise entry.fault(f"there is a job {job.name!r} already", "name it otherwise")
                lines[job.name] = entry
            jobs += copies
        if not jobs:
            raise value.fault("there are no jobs")
        known = {**lines, **self.groups}
        for job in jobs:
            for other in job.extra.get("after", ()):
                if other not in known:
                    raise lines[job.name].fault(f"there is no job {other!r}", nearest(other, known))
        return tuple(sorted(jobs, key=lambda job: job.at))

    def _copies(self, group: str, entry: Value) -> list[CaseJob]:
        found = fields(entry, JOB)
        self.wanted += needs(found, JOB)
        if "gpus" in found and "pods" in found:
            raise entry.fault("gpus and pods exclude each other", "give one of them")
        if "pods" not in found and not found.setdefault("gpus", 1000):
            raise entry.fault("it asks for 0 GPUs")
        if not found["runs"]:
            raise entry.fault("it runs for 0 seconds", "give a time above 0")
        name = found.get("queue", "")
        queues = self.names.get("queues", (name,))
        if name not in queues:
            raise entry.fault(f"there is no queue {name!r}", nearest(name, queues))
        if self.found.get("urgent") == "low":
            found["priority"] = -found.get("priority", 0)
        extra = {key: found.pop(key) for key in _JOB_EXTRAS if key in found}
        every, at = found.pop("every", 0), found.pop("at", 0)
        if "count" not in found:
            if every:
                raise entry.fault("every without count", "count: 10")
            return [CaseJob(group, group, at=at, extra=extra, **found)]
        count = found.pop("count")
        self.groups[group] = tuple(f"{group}-{index}" for index in range(count))
        return [
            CaseJob(name, group, at=at + index * every, extra=extra, **found)
            for index, name in enumerate(self.groups[group])
        ]

    # -- what happens and what must come of it ------------------------------------------------------

    def _step(self, entry: Value) -> Step:
        found = fields(entry, STEP, names=self.names)
        self.wanted += needs(found, STEP)
        verbs = [verb for verb in VERBS if verb in found]
        if len(verbs) != 1:
            raise entry.fault("a step is one thing that happens", f"one of {', '.join(VERBS)}")
        if ("to" in found) != (verbs[0] == "resize"):
            raise entry.fault("resize and to go together")
        named = found[verbs[0]]
        names = (named,) if isinstance(named, str) else named if isinstance(named, tuple) else ()
        if verbs[0] in ("cancel", "vanish"):
            names = self._members(names)
        return Step(found["at"], verbs[0], names, entry.line, found.get("to"))

    def _moments(self) -> tuple[Moment, ...]:
        moments = []
        for entry in _entries(self.found.get("expect")):
            checks = fields(entry, MOMENT, names=self.names)
            self.wanted += needs(checks, MOMENT)
            until = self.found.get("until")
            if until is not None and checks["at"] > until:
                raise entry.fault("is looked at after the end of the case", "let `until` be later")
            moments.append(Moment(checks.pop("at"), entry.line, self._expanded(checks)))
        moments.sort(key=lambda moment: moment.at or 0)
        end = self.found.get("finally")
        if end is not None:
            checks = fields(end, FINALLY, names=self.names)
            self.wanted += needs(checks, FINALLY)
            moments.append(Moment(None, end.line, self._expanded(checks)))
        return tuple(moments)

    def _expanded(self, checks: dict[str, Any]) -> dict[str, Any]:
        """With the copies in place of the entries that made them."""
        by_job = ("nodes", "gpus", "evictions", "reason", "start", "finish", "jct")
        for key, check in checks.items():
            if key in by_job and isinstance(check, dict):
                checks[key] = {job: value for name, value in check.items() for job in self._members((name,))}
            elif isinstance(check, tuple) and key not in ("evicted", "evicted_queues"):
                checks[key] = self._members(check)
        return checks

    def _situation(self, entry: Value) -> Situation:
        states = []
        for name, word in entry.items():
            if name not in self.names["jobs"]:
                raise word.fault(f"there is no job {name!r}", nearest(name, self.names["jobs"]))
            states += [(job, word.choice((*GROUPS, PARTLY))) for job in self._members((name,))]
        return Situation(entry.line, tuple(states))

    def _members(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(job for name in names for job in self.groups.get(name, (name,)))


def _entries(value: Value | None) -> list[Value]:
    if value is None:
        return []
    return value.entries() if value.is_list else [value]
