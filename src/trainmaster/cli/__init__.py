"""The command line: one file per command group, no logic."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any, NoReturn


def main() -> None:
    """Run the command line; exit code 0 done, 1 the work failed, 2 bad usage or bad input."""
    import typer

    from trainmaster.cli.app import build
    from trainmaster.model.errors import InputError, TrainmasterError

    _prepare_streams()
    for name in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(name) is not signal.SIG_IGN:  # as nohup leaves it
            signal.signal(name, _terminated)
    command = typer.main.get_command(build())
    _keep_stdout(command)
    try:
        code = command.main(prog_name="trainmaster", standalone_mode=False)
        if code == INTERRUPTED:
            _leave("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)
    except InputError as error:
        _fail(str(error), 2)
    except TrainmasterError as error:
        _fail(str(error), 1)
    except Terminated as error:
        _leave("terminated", 128 + error.number)
    except (KeyboardInterrupt, typer.Abort):
        _leave("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has had enough (`| head`): nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _fail(f"output can't be written: {error.strerror or error}", 1)
    except _usage_error() as error:
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "trainmaster"
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, file=sys.stderr)
            sys.exit(2)
        message = " ".join(error.format_message().split())  # type: ignore[attr-defined]
        _fail(f"{where}: {message} (see {where} --help)", 2, prefix="")


INTERRUPTED = 128 + signal.SIGINT


def _leave(message: str, code: int) -> NoReturn:
    """End at once: all is cleaned up, and nobody waits for what workers had still to do."""
    print(f"trainmaster: {message}", file=sys.stderr, flush=True)
    os._exit(code)


class Terminated(BaseException):
    """The process was asked to stop: everything is cleaned up on the way out, as for Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _terminated(number: int, frame: object) -> None:
    raise Terminated(number)


def _keep_stdout(command: Any) -> None:
    """Nothing but a command's own results may reach stdout while it works; its help may."""
    from trainmaster.cli.support import stdout_kept

    for below in getattr(command, "commands", {}).values():
        _keep_stdout(below)
    if command.callback is not None:
        command.callback = stdout_kept()(command.callback)


def _prepare_streams() -> None:
    """Output must not fail on a name that the terminal's encoding lacks, or on a closed stream."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _usage_error() -> type[Exception]:
    """The base of click's errors, whether typer brings its own click or uses the package."""
    import typer

    return next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _fail(message: str, code: int, prefix: str = "trainmaster: ") -> None:
    from trainmaster.model.text import printable

    print(printable(f"{prefix}{message}"), file=sys.stderr)
    sys.exit(code)
