"""`trainmaster policies`: what there is, and what can be set about it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from trainmaster.cli.support import emit_json, say

EXAMPLE = "Example: trainmaster policies las"


def policies(
    name: Annotated[
        str | None, typer.Argument(help="One policy, or FILE.py: its parts, knobs, source and limits.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the scheduling policies, or describe one."""
    from trainmaster.policies.registry import names

    described = [_describe(word) for word in ([name] if name is not None else names())]
    if json:
        emit_json(described[0] if name is not None else described)
    elif name is not None:
        _show(described[0])
    else:
        width = max(len(entry["name"]) for entry in described)
        for entry in described:
            say(f"{entry['name']:<{width}}  {entry['summary']}")
        say("\nOne of them in full: trainmaster policies NAME")


def _describe(name: str) -> dict[str, Any]:
    from trainmaster.policies.registry import create, title_of

    policy = create(name)
    found = type(policy)
    return {
        "name": title_of(name),
        "summary": (found.__doc__ or "").strip().partition("\n")[0],
        "parts": {
            "ordering": type(policy.ordering).__name__,
            "walk": type(policy.walk).__name__,
            "placement": type(policy.placement).__name__,
        },
        "knobs": [
            {"name": knob.name, "default": knob.default, "range": knob.range, "help": knob.help}
            for knob in found.all_knobs()
        ],
        "source": found.source,
        "limits": found.limits,
    }


def _show(entry: dict[str, Any]) -> None:
    say(f"{entry['name']}: {entry['summary']}")
    say(f"\nparts    {', '.join(f'{part} {kind}' for part, kind in entry['parts'].items())}")
    say(f"source   {entry['source'] or '-'}")
    say(f"limits   {entry['limits'] or '-'}")
    if not entry["knobs"]:
        say("\nno knobs")
        return
    say(f"\nknobs (set with --set {entry['name']}.KNOB=VALUE or --policy '{entry['name']}(KNOB=VALUE)')")
    width = max(len(knob["name"]) for knob in entry["knobs"])
    for knob in entry["knobs"]:
        say(f"  {knob['name']:<{width}}  {knob['help']}")
        say(f"  {'':<{width}}  {knob['range']}; default {knob['default']}")
