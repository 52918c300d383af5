"""Calls spread over forked processes, of which none outlives the call.

Python runs a signal's handler between any two instructions of the main thread. One that raises
there could lose a process that was just forked, before anything knows of it; so while there are
workers, handlers are held back and called between the steps of the loop.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Generic, TypeVar

from trainmaster.model.errors import OutputError, TrainmasterError

T = TypeVar("T")

TICK_S = 0.2
"""Signals and progress wait no longer than this."""


def call_forked(
    work: Callable[[int], T], calls: int, processes: int, tick: Callable[[], None] = lambda: None
) -> list[T]:
    """`[work(0), …, work(calls - 1)]`, computed by forked processes.

    Args:
        work: is called in the processes, which have the memory of this one; what it returns or
            raises is pickled.
        calls: how many.
        processes: how many at the same time; each takes the next call when it is done with one.
        tick: called here, now and then.

    Raises:
        OutputError: a process can't be started, or died.
        Exception: the first that `work` raises.

    >>> call_forked(lambda number: number * number, 4, processes=2)
    [0, 1, 4, 9]
    """
    results: dict[int, T] = {}
    workers: list[_Worker[T]] = []
    with held_signals() as answer_signals:
        try:
            for _ in range(min(processes, calls)):
                workers.append(_start(work, [worker.connection for worker in workers]))
            numbers = iter(range(calls))
            for worker in workers:
                worker.take(next(numbers))
            while len(results) < calls:
                answer_signals()
                tick()
                for worker in _done(workers):
                    results[worker.number] = worker.result()
                    number = next(numbers, None)
                    if number is None:
                        worker.number = IDLE
                    else:
                        worker.take(number)
            tick()
        finally:
            # They hold nothing that is not here, so nobody waits for what they are at.
            for worker in workers:
                worker.end()
    return [results[number] for number in range(calls)]


IDLE = -1


@dataclass
class _Worker(Generic[T]):
    process: ForkProcess
    connection: Connection
    number: int = IDLE

    def take(self, number: int) -> None:
        self.number = number
        try:
            self.connection.send(number)
        except OSError:
            raise self._died() from None

    def result(self) -> T:
        try:
            if not self.connection.poll():
                raise EOFError
            returned, value = self.connection.recv()
        except (EOFError, OSError):
            raise self._died() from None
        if returned:
            result: T = value
            return result
        raise value

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.process.close()
        self.connection.close()

    def _died(self) -> OutputError:
        self.process.join(5)
        code = self.process.exitcode
        if code == -signal.SIGKILL:
            return OutputError("a worker process was killed, perhaps for memory (use fewer --jobs)")
        if code is None:
            how = "closed its connection"
        elif code < 0:
            how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        else:
            how = f"ended with exit code {code}"
        return OutputError(f"a worker process {how}; --jobs 1 may show why")


def _start(work: Callable[[int], T], inherited: Sequence[Connection]) -> _Worker[T]:
    context = multiprocessing.get_context("fork")
    mine, other = context.Pipe()
    process = context.Process(target=_serve, args=(work, other, [*inherited, mine]))
    try:
        process.start()
    except OSError as error:
        mine.close()
        raise OutputError(f"can't start a worker process: {error.strerror} (use fewer --jobs)") from None
    finally:
        other.close()
    return _Worker(process, mine)


def _done(workers: Sequence[_Worker[T]]) -> list[_Worker[T]]:
    """Workers with a result, or dead; waits a little for one."""
    busy = [worker for worker in workers if worker.number != IDLE]
    ready = wait([worker.connection for worker in busy], TICK_S)
    # Whatever a dead worker had started may keep its end of the connection open.
    return [worker for worker in busy if worker.connection in ready or not worker.process.is_alive()]


def _serve(work: Callable[[int], Any], connection: Connection, inherited: Sequence[Connection]) -> None:
    """What a worker process does until it is killed, or alone."""
    for number in _answered():
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends its workers
    for end in inherited:
        end.close()
    while True:
        try:
            number = connection.recv()
        except EOFError:
            return
        try:
            answer = True, work(number)
        except Exception as error:  # noqa: BLE001 - it is raised in the parent
            if not isinstance(error, TrainmasterError):
                error.add_note(f"In a worker process:\n{traceback.format_exc()}")
            answer = False, error
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        connection.send(answer)


def stop_with(parent: int) -> None:
    """End this worker if the process that waits for it is gone."""
    if os.getppid() != parent:
        os._exit(1)


def _answered() -> list[int]:
    """Signals that a Python function answers."""
    return sorted(number for number in signal.valid_signals() if callable(signal.getsignal(number)))


@contextmanager
def held_signals() -> Iterator[Callable[[], None]]:
    """Handlers of signals written in Python wait until the yielded function is called, or the end.

    Blocking the signals would not do: threads of numerical libraries take them, and Python then
    still runs the handlers in the main thread.

    >>> try:
    ...     with held_signals() as answer:
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("goes on")
    ...         answer()
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    goes on
    interrupted
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None  # handlers run in the main thread and interrupt nothing here
        return
    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in _answered()}
    came: list[int] = []
    held = True

    def hold(number: int, frame: object) -> None:
        if held:
            came.append(number)
        else:
            handlers[number](number, frame)

    def answer() -> None:
        while came:
            number = came.pop(0)
            handlers[number](number, None)

    try:
        for number in handlers:
            signal.signal(number, hold)
        yield answer
    finally:
        # Passed on from now, even where a handler raises before all are put back.
        held = False
        for number, handler in handlers.items():
            signal.signal(number, handler)
        answer()
