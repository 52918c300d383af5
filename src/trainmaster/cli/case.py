"""`trainmaster case`: scenarios with the right answer, tried under every policy that claims them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainmaster.cli.support import emit_json, path, progress_bar, say
from trainmaster.model.errors import InputError

if TYPE_CHECKING:
    from trainmaster.testing.scenario import CaseResult

EXAMPLE = "Example: trainmaster case tests/cases my_cluster.yaml"


def case(
    paths: Annotated[
        list[Path], typer.Argument(parser=path, metavar="FILE_OR_FOLDER...", help="Case files (YAML).")
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Only under this policy, where it claims what a case needs; may stand several times."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
) -> None:
    """Try scheduling cases; exit code 0 only if none failed."""
    from trainmaster.testing.scenario import FAILED, case_files, load, run_case, summary

    cases = [load(file) for file in case_files(paths)]
    results = []
    with progress_bar("cases") as update:
        for done, found in enumerate(cases):
            update(done, len(cases))
            results.append(run_case(found, policies=tuple(policy or ())))
    results = [result for result in results if result.runs]
    if not results:
        raise InputError(f"no case is for policy {', '.join(policy or ())}", mend="trainmaster policies")
    if json:
        emit_json({"summary": summary(results), "cases": [result.as_dict() for result in results]})
    else:
        width = max(len(result.case.label) for result in results)
        for result in results:
            _show(result, width)
        say(f"\n{summary(results)}")
    if any(result.status == FAILED for result in results):
        raise typer.Exit(1)


def _show(result: CaseResult, width: int) -> None:
    word = {"passed": "pass", "failed": "FAIL"}.get(result.status, "    ")
    tail = ""
    if result.status == "not yet":
        held = f"; all else holds in {result.tried} of {len(result.runs)} runs" if result.tried else ""
        tail = f"  not yet: needs {', '.join(result.needs)}{held}"
    say(f"{result.case.label:>{width}}  {word}  {result.case.title}{tail}")
    for run in result.runs:
        for difference in run.differences:
            say(f"{'':>{width}}        {run.name}{': ' if run.name else ''}{difference}")
