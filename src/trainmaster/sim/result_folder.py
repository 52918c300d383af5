"""What must hold of a result folder before it is written, and before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from trainmaster.model.errors import InputError
from trainmaster.sim.result import FILES


def refuse_to_replace(folder: str | Path, inputs: Iterable[str | Path]) -> None:
    """A run must not replace or remove what it reads.

    Args:
        folder: of the results.
        inputs: files that the run reads; of a folder, every file in it.

    Raises:
        InputError: one of them is a file of the result folder, under this or another name.
    """
    targets = [path for path in (Path(folder, name) for name in FILES) if path.is_file()]
    if not targets:
        return
    for source in (file for each in inputs for file in _files(Path(each))):
        for target in targets:
            if target.samefile(source):
                other = "" if str(source) == str(target) else f", which is {target}"
                message = f"is read by this run, and its results would replace it{other}"
                raise InputError(message, file=source, mend="choose another --out")


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (file for file in sorted(path.iterdir()) if file.is_file())
