"""Forked workers: results in order, and nobody left however it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from trainmaster.model.errors import InputError, OutputError
from trainmaster.sim import workers
from trainmaster.sim.workers import call_forked, held_signals


class Asked(BaseException):
    """What the handler of these tests raises."""


def refuse(number: int, frame: object) -> None:
    raise Asked


@pytest.fixture(autouse=True)
def children(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """SIGTERM raises `Asked`, and still does at the end; no child and no open end is left then."""
    pids: list[int] = []
    real = os.fork

    def fork() -> int:
        pids.append(real())
        return pids[-1]

    monkeypatch.setattr(os, "fork", fork)
    before = signal.signal(signal.SIGTERM, refuse)
    interrupt = signal.getsignal(signal.SIGINT)
    files = open_files()
    yield pids
    signal.signal(signal.SIGINT, interrupt)
    assert signal.signal(signal.SIGTERM, before) is refuse
    assert_none_left(pids)
    assert open_files() == files


def assert_none_left(children: list[int]) -> None:
    for child in children:
        with pytest.raises(ChildProcessError):  # it has ended, and was waited for
            os.waitpid(child, os.WNOHANG)


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def square(number: int) -> int:
    return number * number


def for_ever(number: int) -> int:
    signal.pause()
    return number


class TestResults:
    @pytest.mark.parametrize("calls", [1, 2, 7])
    @pytest.mark.parametrize("processes", [1, 2, 5])
    def test_are_in_order(self, calls: int, processes: int) -> None:
        assert call_forked(square, calls, processes) == [number * number for number in range(calls)]

    def test_come_from_as_many_processes_as_asked(self) -> None:
        here, there = multiprocessing.Pipe()

        def meet(number: int) -> int:
            """Both calls must be under way for either to return."""
            if number == 0:
                there.send("ready")
                return int(there.recv())
            here.recv()
            here.send(os.getpid())
            return os.getppid()

        with here, there:
            other, parent = call_forked(meet, 2, 2)
        assert parent == os.getpid() != other

    def test_may_be_larger_than_a_pipe_holds(self) -> None:
        assert [len(part) for part in call_forked(lambda number: bytes(1 << 20), 4, 2)] == [1 << 20] * 4

    def test_ticks_go_on_to_the_end(self) -> None:
        ticks: list[int] = []
        call_forked(square, 3, 2, tick=lambda: ticks.append(1))
        assert len(ticks) >= 2


class TestFailures:
    def test_an_error_keeps_its_parts(self) -> None:
        def fail(number: int) -> None:
            if number == 0:
                raise InputError("wrong", file="a.csv", row=3)
            for_ever(number)

        with pytest.raises(InputError, match=r"^a\.csv, row 3: wrong$"):
            call_forked(fail, 2, 2)

    def test_an_unforeseen_error_says_where(self) -> None:
        with pytest.raises(ZeroDivisionError) as caught:
            call_forked(lambda number: 1 // number, 1, 1)
        assert "in <lambda>" in caught.value.__notes__[0]

    def test_an_error_of_a_tick(self) -> None:
        def tick() -> None:
            raise InputError("no more")

        with pytest.raises(InputError, match="no more"):
            call_forked(for_ever, 2, 2, tick)

    @pytest.mark.parametrize(
        ("last", "message"),
        [
            (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed, perhaps for memory"),
            (lambda: os.kill(os.getpid(), signal.SIGTERM), r"was ended by signal 15 \(Terminated\)"),
            (lambda: os._exit(3), "ended with exit code 3"),
        ],
    )
    @pytest.mark.parametrize("calls", [2, 5])
    def test_a_worker_that_dies(self, last: Callable[[], None], message: str, calls: int) -> None:
        def die(number: int) -> int:
            if number == calls - 1:
                last()
            return number if calls > 2 else for_ever(number)

        with pytest.raises(OutputError, match=message) as caught:
            call_forked(die, calls, 2)
        assert "\n" not in str(caught.value)

    def test_a_worker_that_dies_in_the_middle_of_its_answer(self) -> None:
        def die(number: int) -> None:
            def send(connection: Connection, data: bytes) -> None:
                os.write(connection.fileno(), bytes(data)[:3])
                os.kill(os.getpid(), signal.SIGKILL)

            Connection._send = send  # type: ignore[attr-defined]

        with pytest.raises(OutputError, match="was killed"):
            call_forked(die, 1, 1)

    def test_a_worker_whose_own_child_lives_on(self) -> None:
        """It keeps the connection open, so that no end of file comes."""
        reader, writer = os.pipe()

        def die(number: int) -> None:
            if os.fork() == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)

        with pytest.raises(OutputError, match="was killed"):
            call_forked(die, 1, 1)
        os.close(writer)
        os.close(reader)

    def test_a_process_that_cannot_be_started(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real, started = ForkProcess.start, []

        def start(process: ForkProcess) -> None:
            started.append(process)
            if len(started) == 2:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            real(process)

        monkeypatch.setattr(ForkProcess, "start", start)
        with pytest.raises(OutputError, match=r"^can't start a worker process: Resource temporarily"):
            call_forked(for_ever, 2, 2)

    def test_a_worker_ends_with_its_parent(self) -> None:
        def alone(number: int) -> None:
            workers.stop_with(os.getppid())
            workers.stop_with(os.getppid() + 1)

        with pytest.raises(OutputError, match="ended with exit code 1"):
            call_forked(alone, 1, 1)


# -- signals -----------------------------------------------------------------------------------------


class Injector:
    """Raises SIGTERM in this process when so many lines of the code around forks have run."""

    FILES = (
        workers.__file__,
        *(f"{Path(multiprocessing.__file__).parent}/{name}.py" for name in ("process", "popen_fork")),
    )

    def __init__(self, line: int) -> None:
        self.left = line
        self.process = os.getpid()

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename not in self.FILES or os.getpid() != self.process:
            return None
        if event == "line" and self.left >= 0:
            self.left -= 1
            if self.left < 0:
                signal.raise_signal(signal.SIGTERM)
        return self

    @property
    def hit(self) -> bool:
        return self.left < 0


def interrupted_at(line: int, children: list[int]) -> bool:
    """One call with a signal at that line; whether there was such a line."""
    injector = Injector(line)
    before = sys.gettrace()
    try:
        sys.settrace(injector)
        call_forked(square, 2, 2)
    except Asked:
        assert injector.hit
    else:
        assert not injector.hit, f"the signal at line {line} got lost"
    finally:
        sys.settrace(before)
    with pytest.raises(Asked):
        signal.raise_signal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, refuse)
    assert_none_left(children)
    return injector.hit


def test_a_signal_at_any_line_leaves_nobody_and_is_not_lost(children: list[int]) -> None:
    line = 0
    while interrupted_at(line, children):
        children.clear()
        line += 1
    assert line > 100


@pytest.mark.parametrize("fork", [1, 2])
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_signal_at_a_fork(monkeypatch: pytest.MonkeyPatch, fork: int, side: str) -> None:
    real, forks, parent = os.fork, [], os.getpid()

    def signalling_fork() -> int:
        forks.append(1)
        if side == "before" and len(forks) == fork:
            signal.raise_signal(signal.SIGTERM)
        child = real()
        if side == "after" and len(forks) == fork:
            # From both sides: the handler that a child inherits must not run there either.
            os.kill(parent if child else os.getpid(), signal.SIGTERM)
        return child

    monkeypatch.setattr(os, "fork", signalling_fork)
    with pytest.raises(Asked):
        call_forked(for_ever, 2, 2)


def test_a_signal_in_the_middle() -> None:
    def ask(number: int) -> int:
        if number == 3:
            os.kill(os.getppid(), signal.SIGTERM)
            for_ever(number)
        return number

    with pytest.raises(Asked):
        call_forked(ask, 6, 2)


def test_workers_leave_interrupts_to_the_parent() -> None:
    def interrupt(number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return number

    assert call_forked(interrupt, 2, 2) == [0, 1]


def test_a_handler_that_returns_ends_nothing() -> None:
    asked: list[int] = []
    parent = os.getpid()
    before = signal.signal(signal.SIGUSR1, lambda number, frame: asked.append(number))
    try:
        assert call_forked(lambda number: os.kill(parent, signal.SIGUSR1), 2, 2) == [None, None]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert signal.SIGUSR1 in asked


def test_from_another_thread() -> None:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.extend(call_forked(square, 3, 2)))
    thread.start()
    thread.join(timeout=60)
    assert found == [0, 1, 4]


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_signals() as answer:
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            signal.raise_signal(signal.SIGHUP)
            answer()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_run_in_turn_and_all() -> None:
    ran: list[int] = []
    before = {
        number: signal.signal(number, lambda number, frame: ran.append(number))
        for number in (signal.SIGUSR1, signal.SIGUSR2)
    }
    try:
        with held_signals() as answer:
            signal.raise_signal(signal.SIGUSR2)
            signal.raise_signal(signal.SIGUSR1)
            assert ran == []
            answer()
            assert ran == [signal.SIGUSR2, signal.SIGUSR1]
            signal.raise_signal(signal.SIGUSR2)
        assert ran[2:] == [signal.SIGUSR2]
    finally:
        for number, old in before.items():
            signal.signal(number, old)
