"""Readers named by their Python file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmaster.model.errors import InputError
from trainmaster.traces import load_trace
from trainmaster.traces.readers import find_reader

READER = """\
from trainmaster.traces.readers.normalized import NormalizedReader


class {name}(NormalizedReader):
    name = "{name}"
"""


def written(folder: Path, *texts: str) -> str:
    path = folder / "my_reader.py"
    path.write_text("\n".join(texts))
    return str(path)


def error(name: str) -> str:
    with pytest.raises(InputError) as caught:
        find_reader(name)
    return str(caught.value)


def test_the_only_reader_of_a_file_and_the_named_one(tmp_path: Path) -> None:
    one = READER.format(name="Mine")
    path = written(tmp_path, one)
    log = tmp_path / "week.log"
    log.write_text("job_id,submit_s,duration_s,num_gpus\na,0,5,2\n")
    trace = load_trace(log, format=path)
    assert (trace.format, [job.id for job in trace.jobs]) == ("Mine", ["a"])

    path = written(tmp_path, one, READER.format(name="Other"))
    assert find_reader(f"{path}:Other").name == "Other"
    assert error(path) == f"{path}: expected one reader class, found Mine, Other (write FILE.py:Class)"
    assert error(f"{path}:Othr") == f"{path}: no reader class 'Othr' (did you mean 'Other'?)"


def test_a_file_without_a_reader(tmp_path: Path) -> None:
    path = written(tmp_path, "from trainmaster.traces import Reader\n")
    assert error(path) == f"{path}: expected one reader class, found none (write FILE.py:Class)"


def test_no_such_file(tmp_path: Path) -> None:
    path = f"{tmp_path}/nowhere.py"
    assert error(path) == f"{path}: no such file (give a format's name or its Python file)"
    (tmp_path / "folder.py").mkdir()
    assert error(f"{tmp_path}/folder.py") == f"{tmp_path}/folder.py: can't be read: Is a directory"


@pytest.mark.parametrize("relative", [False, True])
def test_files_that_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, "import os\nclass Mine(\n")
    path = "my_reader.py" if relative else path
    assert error(path).startswith(f"{path}, row 2: not valid Python: ")
    written(tmp_path, "def half(number):\n    return number // 0\n\n\nhalf(1)\n# more\n")
    assert error(path).startswith(f"{path}, row 2: ZeroDivisionError: ")


def test_readers_that_are_not_complete(tmp_path: Path) -> None:
    base = "from trainmaster.traces import Reader\n"
    path = written(tmp_path, base, "class Mine(Reader):\n    name = 'mine'\n    def detect(self, *_): ...\n")
    assert error(path) == f"{path}: Mine lacks read (define it in the class)"
    path = written(
        tmp_path, base, "class Mine(Reader):\n    def detect(self, *_): ...\n    def read(self, *_): ...\n"
    )
    assert error(path) == f'{path}: Mine has no name (write name = "..." in the class)'


def test_a_reader_that_can_not_be_made(tmp_path: Path) -> None:
    body = READER.format(name="Mine") + "\n    def __init__(self):\n        1 / 0\n"
    path = written(tmp_path, body)
    assert error(path) == f"{path}: ZeroDivisionError: division by zero ({path}, line 8)"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{}['gpus']", "KeyError: 'gpus'"),
        ("exit(0)", "SystemExit: 0"),
        ("open('/nowhere')", "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere'"),
    ],
)
def test_a_reader_that_fails_in_the_middle(tmp_path: Path, line: str, what: str) -> None:
    body = READER.format(name="Mine")
    body += f"\n    def read(self, source, problems):\n        {line}\n        yield\n"
    path = written(tmp_path, body)
    log = tmp_path / "week.log"
    log.write_text("job_id,submit_s,duration_s,num_gpus\na,0,5,2\n")
    with pytest.raises(InputError) as caught:
        load_trace(log, format=path)
    told = str(caught.value)
    assert told.startswith(f"{log}: the reader Mine fails: {what} (")
    assert told.endswith("(mend the reader)")
    assert "\n" not in told
