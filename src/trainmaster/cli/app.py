"""The command tree."""

from __future__ import annotations

from typing import Annotated

import typer

from trainmaster._version import __version__
from trainmaster.cli import case, forecast, policies, simulate, trace, usage, why


def build() -> typer.Typer:
    """All commands."""
    app = typer.Typer(
        name="trainmaster",
        help="Replay the job log of a shared GPU cluster under many schedulers, and compare them.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        epilog="Example: trainmaster simulate week.csv.gz --policy fifo,srtf --nodes 32 --gpus-per-node 8",
    )
    app.callback()(options)
    app.command("simulate", epilog=simulate.EXAMPLE)(simulate.simulate)
    app.command("policies", epilog=policies.EXAMPLE)(policies.policies)
    app.command("case", epilog=case.EXAMPLE)(case.case)
    app.command("usage", epilog=usage.EXAMPLE)(usage.usage)
    app.command("forecast", epilog=forecast.EXAMPLE)(forecast.forecast)
    app.command("why", epilog=why.EXAMPLE)(why.why)
    app.add_typer(trace.app, name="trace")
    return app


def _print_version(asked: bool) -> None:
    if asked:
        print(f"trainmaster {__version__}")
        raise typer.Exit


def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Replay the job log of a shared GPU cluster under many schedulers, and compare them."""
