"""The commands in README.md and docs/ do and print what the pages say: they are run here.

How a page marks what is run stands in `scripts/refresh-docs`, which also writes a page anew. A
command that fails fails the test and is shown with its output; so does one that prints something
else than the page says.
"""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script() -> ModuleType:
    """scripts/refresh-docs as a module: its name has no .py."""
    loader = SourceFileLoader("refresh_docs", str(ROOT / "scripts" / "refresh-docs"))
    spec = spec_from_loader("refresh_docs", loader)
    assert spec is not None
    module = module_from_spec(spec)
    unwanted, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no scripts/refresh-docsc
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = unwanted
    return module


DOCS = script()
PAGES: list[Path] = DOCS.pages()


def refreshed(page: str, folder: Path) -> str:
    """A page as its commands would have it now, run with the interpreter of the tests."""
    text: str = DOCS.refreshed(page, folder, Path(sys.executable).parent)
    return text


def test_the_readme_and_the_tour_are_among_them() -> None:
    """A page without a mark would pass unseen."""
    for name in ("README.md", "docs/tour.md"):
        marked = "".join(block["body"] for block in DOCS.BLOCK.finditer((ROOT / name).read_text("utf-8")))
        assert "$ trainmaster trace synth" in marked and "$ trainmaster simulate" in marked
        assert ROOT / name in PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page(path: Path, tmp_path: Path) -> None:
    name = str(path.relative_to(ROOT))
    before = path.read_text(encoding="utf-8")
    found = DOCS.differences(before, refreshed(before, tmp_path), name)
    assert not found, f"the page is out of date: run scripts/refresh-docs {name}\n{found}"


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

    <!-- test -->
    ```console
    $ cat twice.txt
    hello
    hello
    ```
"""


def test_marked_blocks_run_in_order(tmp_path: Path) -> None:
    assert refreshed(EXAMPLE, tmp_path) == EXAMPLE
    assert (tmp_path / "sub" / "hello.py").read_text() == 'print("hello")\n'
    assert (tmp_path / "twice.txt").read_text() == "hello\nhello\n"


def test_what_is_printed_now_takes_the_place_of_what_was(tmp_path: Path) -> None:
    page = EXAMPLE.replace("\nhello\n$ cat", "\ngood day\nto you\n$ cat").replace(
        "    hello\n    hello", "    hi"
    )
    assert refreshed(page, tmp_path) == EXAMPLE
    found = DOCS.differences(page, EXAMPLE, "page.md")
    assert found.startswith("--- page.md, as written\n+++ page.md, as printed now\n")
    assert "-good day\n-to you\n+hello\n" in found


@pytest.mark.parametrize(
    ("shown", "fresh"),
    [
        ("x\n…\n", "1\n…\n"),
        ("…\nx\ny\n", "…\n4\n5\n"),
        ("x\n…\ny\n\n", "1\n…\n5\n\n"),
        ("x\n\n", "1\n2\n3\n4\n5\n\n"),
        ("", ""),
    ],
)
def test_as_many_lines_as_before_stay_around_a_gap(shown: str, fresh: str, tmp_path: Path) -> None:
    page = "<!-- test -->\n```console\n$ seq 5\n{}$ true\n```\n"
    assert refreshed(page.format(shown), tmp_path) == page.format(fresh)


def test_python_is_the_one_that_runs_the_tests(tmp_path: Path) -> None:
    refreshed('<!-- test -->\n```bash\npython -c "import sys; print(sys.prefix)" > prefix\n```\n', tmp_path)
    assert (tmp_path / "prefix").read_text().strip() == sys.prefix


@pytest.mark.parametrize("command", ["false\ntrue", "false | true", "echo $unset_variable"])
def test_a_failing_command_fails_the_page(command: str, tmp_path: Path) -> None:
    with pytest.raises(DOCS.CommandError, match="exit code"):
        refreshed(f"<!-- test -->\n```bash\n{command}\n```\n", tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "<!-- test -->\n\n```bash\ntrue\n```\n",
        "<!-- test -->\n```python\npass\n```\n",
        "<!-- file: a.py -->\ntext\n",
        "<!--test-->\n```bash\ntrue\n```\n",
    ],
)
def test_a_mark_without_its_block_is_an_error(page: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"block"):
        refreshed(page, tmp_path)


def test_the_script_checks_and_refreshes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- test -->\n```console\n$ echo new\nold\n```\n")
    monkeypatch.setattr(DOCS, "ROOT", tmp_path)
    assert DOCS.main(["--check", str(page)]) == 1
    assert "-old\n+new\n" in capsys.readouterr().out and "old" in page.read_text()
    assert DOCS.main([str(page)]) == 0
    assert (page.read_text(), capsys.readouterr().out) == (
        "<!-- test -->\n```console\n$ echo new\nnew\n```\n",
        "refreshed page.md\n",
    )
    assert DOCS.main(["--check", str(page)]) == 0
    page.write_text("<!-- test -->\n```bash\nfalse\n```\n")
    assert DOCS.main([str(page)]) == 1
    assert "page.md: exit code 1" in capsys.readouterr().err
