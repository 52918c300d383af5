"""Loading a profile: open, recognize, read. The one way in for every format."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trainmaster.model.errors import InputError
from trainmaster.profiles.document import Source
from trainmaster.profiles.profile import Profile
from trainmaster.profiles.readers import READERS

FORMATS: Final = tuple(reader.name for reader in READERS)
"""Names of the formats that can be read."""


def load_profile(path: str | Path) -> Profile:
    """Read a speed profile of any known format, recognized by its contents.

    Args:
        path: the file, plain or gzip.

    Raises:
        InputError: a folder, a file that can't be read or is of no known format, or a value
            at fault; names file and key.
    """
    path = Path(path)
    wanted = "give " + " or ".join(reader.wanted for reader in READERS)
    if path.is_dir():
        raise InputError("is a folder, a profile is one file", file=path, mend=wanted)
    source = Source(path)
    for reader in READERS:
        if reader.detect(source):
            return reader.read(source)
    raise InputError("is of no known profile format", file=path, mend=wanted)
