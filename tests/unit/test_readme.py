"""The commands in README.md and docs/ do what the page says: they are run here.

A page marks what is run with an HTML comment on the line before a fenced block:

``<!-- test -->``
    before a ``bash`` block: its lines are run; before a ``console`` block: the lines after
    ``$ `` are run (with the ``\\`` continuations), the other lines are output, shown but not compared.
``<!-- file: NAME -->``
    the block's text is written to NAME, for the commands that follow.

The blocks of a page run in order, in one temporary folder per page, with the environment that
runs the tests first on PATH. A command that fails, fails the test and is shown with its output.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^(?P<indent>[ ]*)<!-- (?:(?P<test>test)|file: (?P<file>\S+)) -->\n"
    r"(?P=indent)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
MARK = re.compile(r"^[ ]*<!-- *(?:test|file)\b.*-->", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A marked block: a file to write, or (file = None) commands to run."""

    file: str | None
    text: str


def commands(console: str) -> str:
    """The commands of a console block, without prompts and output.

    >>> commands("$ echo a\\na\\n$ echo \\\\\\n    b\\nb\\n")
    'echo a\\necho \\\\\\n    b\\n'
    """
    lines = []
    continued = False
    for line in console.splitlines(keepends=True):
        if continued or line.startswith("$ "):
            lines.append(line if continued else line.removeprefix("$ "))
            continued = line.rstrip("\n").endswith("\\")
    return "".join(lines)


def marked_blocks(page: str) -> list[Block]:
    """The marked blocks of a Markdown page, in order; a mark that marks no block is an error."""
    blocks = []
    for match in BLOCK.finditer(page):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        if match["file"]:
            blocks.append(Block(match["file"], body))
        elif match["language"] == "console":
            blocks.append(Block(None, commands(body)))
        elif match["language"] == "bash":
            blocks.append(Block(None, body))
        else:
            raise ValueError(f"only bash and console blocks can be tested, not {match['language']!r}: {body}")
    if len(blocks) != len(MARK.findall(page)):
        raise ValueError("a test or file mark stands before no fenced block")
    return blocks


def run_page(page: str, folder: Path) -> None:
    """Write and run what a page marks, inside `folder`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    for block in marked_blocks(page):
        if block.file:
            target = folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=folder,
            env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{block.text}\n{done.stdout}"


PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if MARK.search(path.read_text(encoding="utf-8"))
]


def test_the_readme_and_the_tour_are_among_them() -> None:
    """A page without a mark would pass unseen."""
    for name in ("README.md", "docs/tour.md"):
        blocks = marked_blocks((ROOT / name).read_text(encoding="utf-8"))
        commands_run = "\n".join(block.text for block in blocks if block.file is None)
        assert "trainmaster trace synth" in commands_run and "trainmaster simulate" in commands_run
        assert ROOT / name in PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path: Path, tmp_path: Path) -> None:
    run_page(path.read_text(encoding="utf-8"), tmp_path)


EXAMPLE = """\
# A page

```bash
false  # not marked, not run
```

<!-- file: sub/hello.py -->
```python
print("hello")
```

<!-- test -->
```console
$ python sub/hello.py > greeting.txt
$ cat greeting.txt
hello
$ cat \\
    greeting.txt > copy.txt
```

1. In a list:

    <!-- test -->
    ```bash
    cat copy.txt copy.txt > twice.txt
    ```
"""


def test_marked_blocks_run_in_order(tmp_path: Path) -> None:
    run_page(EXAMPLE, tmp_path)
    assert (tmp_path / "sub" / "hello.py").read_text() == 'print("hello")\n'
    assert (tmp_path / "twice.txt").read_text() == "hello\nhello\n"


def test_python_is_the_one_that_runs_the_tests(tmp_path: Path) -> None:
    run_page('<!-- test -->\n```bash\npython -c "import sys; print(sys.prefix)" > prefix\n```\n', tmp_path)
    assert (tmp_path / "prefix").read_text().strip() == sys.prefix


@pytest.mark.parametrize("command", ["false\ntrue", "false | true", "echo $unset_variable"])
def test_a_failing_command_fails_the_page(command: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="exit code"):
        run_page(f"<!-- test -->\n```bash\n{command}\n```\n", tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "<!-- test -->\n\n```bash\ntrue\n```\n",
        "<!-- test -->\n```python\npass\n```\n",
        "<!-- file: a.py -->\ntext\n",
        "<!--test-->\n```bash\ntrue\n```\n",
    ],
)
def test_a_mark_without_its_block_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match=r"block"):
        marked_blocks(page)
