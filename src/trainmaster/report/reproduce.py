"""The command line that makes the same records again."""

from __future__ import annotations

import shlex

from .records import Records


def command(records: Records) -> str:
    """The command line, as recorded or put together from what the records tell."""
    if records.command is not None:
        return records.command
    runs, first = records.runs, records.runs[0]
    words = ["trainmaster simulate", shlex.quote(records.trace.path or "TRACE")]
    words.append(f"--policy {shlex.quote(','.join(dict.fromkeys(run.policy for run in runs)))}")
    nodes = list(dict.fromkeys(run.nodes for run in runs if run.nodes))
    if nodes and first.gpus and first.nodes and first.gpus % first.nodes == 0:
        words.append(f"--nodes {','.join(map(str, nodes))} --gpus-per-node {first.gpus // first.nodes}")
    for option, value in (
        ("predictor", first.predictor),
        ("placement", first.placement),
        ("seed", first.seed),
    ):
        if value is not None:
            words.append(f"--{option} {value}")
    return " ".join([*words, "--out DIR"])


def folded(command: str) -> str:
    """A command line with each option on a line of its own, to be read and pasted.

    >>> print(folded("trainmaster simulate x.csv --policy 'fifo,las(queues=3)' --strict"))
    trainmaster simulate x.csv \\
      --policy 'fifo,las(queues=3)' \\
      --strict
    """
    try:
        words = shlex.split(command)
    except ValueError:  # not as the shell would write it; shown as it is
        return command
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("--"):
            lines.append([])
        lines[-1].append(shlex.quote(word))
    return " \\\n  ".join(" ".join(line) for line in lines if line)
