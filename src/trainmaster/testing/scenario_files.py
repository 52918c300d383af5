"""Cases about files: what a reader makes of a small log, and commands that are run several times."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from trainmaster.model.errors import TrainmasterError
from trainmaster.model.units import to_gpus, to_seconds
from trainmaster.testing.scenario_expect import compare
from trainmaster.testing.scenario_model import Bound, ProcessScene, ReaderScene
from trainmaster.traces import Trace, load_trace
from trainmaster.traces.readers.philly import machine_gpus

TIMEOUT_S: Final = 120
STREAMS: Final = ("stdout", "stderr")


def check_reader(scene: ReaderScene) -> list[str]:
    """Read the log and compare; returns the differences."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), scene.files)
        path = Path(folder) / scene.read
        try:
            trace = load_trace(path, format=scene.format)
            return [
                difference
                for key, expected in scene.expect.items()
                for difference in _reader_differences(key, expected, trace, path)
            ]
        except TrainmasterError as error:
            return [str(error).replace(f"{folder}{os.sep}", "")]


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")


def _reader_differences(key: str, expected: Any, trace: Trace, path: Path) -> Iterator[str]:
    if key == "jobs":
        yield from compare("jobs read:", len(trace), expected)
    elif key in ("dropped", "noted"):
        found: Mapping[str, int] = getattr(trace.problems, key)
        for reason in sorted({*found, *expected}):
            yield from compare(f"{key} as {reason}:", found.get(reason, 0), expected.get(reason, Bound(0)))
    elif key == "says":
        messages = "\n".join(example.message for example in trace.problems.examples)
        for words in expected:
            if words not in messages:
                yield f"the reader doesn't say {words!r}, but {messages!r}"
    elif key == "machines":
        for trust, machines in expected.items():
            listed = machine_gpus(path, trust=trust)
            if listed != machines:
                yield f"GPUs by machine ({trust}) are {listed}, expected {machines}"
    else:
        yield from _job_differences(key, expected, trace)


def _job_differences(key: str, expected: Mapping[str, Bound], trace: Trace) -> Iterator[str]:
    rows = {job.id: row for row, job in enumerate(trace.jobs)}
    for name, bound in expected.items():
        if name not in rows:
            yield f"there is no job {name!r}"
        elif key == "gpus":
            asked = trace.jobs[rows[name]].request.gpus
            yield from compare(f"{name} asks for", asked, bound, lambda milli: f"{to_gpus(milli)} GPUs")
        else:
            runs = trace.truths[rows[name]].duration or 0
            yield from compare(f"{name} runs for", runs, bound, lambda ns: f"{to_seconds(ns):g} s")


def check_process(scene: ProcessScene) -> list[str]:
    """Run the command once in each environment and compare; returns the differences."""
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for number, environment in enumerate(scene.environments):
            here = Path(folder) / str(number)
            here.mkdir()
            _write(here, scene.files)
            try:
                runs.append(_run(scene, here, environment))
            except subprocess.TimeoutExpired:
                return [f"run {number + 1}: no end after {TIMEOUT_S} s"]
        return list(_process_differences(scene, runs))


class _Run:
    """What a command left behind."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[bytes]) -> None:
        self.folder = folder
        self.done = done

    def content(self, name: str) -> bytes | None:
        """Bytes of a file or of a stream; None if there is no such file."""
        if name in STREAMS:
            stream: bytes = getattr(self.done, name)
            return stream
        path = self.folder / name
        return path.read_bytes() if path.is_file() else None


def _run(scene: ProcessScene, folder: Path, environment: Mapping[str, str]) -> _Run:
    done = subprocess.run(
        [sys.executable, "-m", "trainmaster", *scene.run],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return _Run(folder, done)


def _process_differences(scene: ProcessScene, runs: list[_Run]) -> Iterator[str]:
    for number, run in enumerate(runs, start=1):
        if run.done.returncode != scene.expect["exit"]:
            last = run.done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            yield f"run {number}: exit code {run.done.returncode}, expected {scene.expect['exit']} ({last})"
        for name, texts in scene.expect.get("contains", {}).items():
            content = run.content(name)
            for text in texts:
                if content is None or text.encode() not in content:
                    yield f"run {number}: {name} {'is missing' if content is None else f'lacks {text!r}'}"
    for name in scene.expect.get("same", ()):
        contents = [run.content(name) for run in runs]
        if None in contents:
            yield f"{name} is missing after run {contents.index(None) + 1}"
            continue
        for number, (one, other) in enumerate(pairwise(contents), start=1):
            if one != other:
                yield f"{name} differs between run {number} and run {number + 1}{_first_line(one, other)}"


def _first_line(one: bytes | None, other: bytes | None) -> str:
    lines = zip((one or b"").splitlines(), (other or b"").splitlines(), strict=False)
    for number, (left, right) in enumerate(lines, start=1):
        if left != right:
            return f", first in line {number}"
    return ", by its length"
