"""Writing a profile in our own format."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

from trainmaster.model.errors import InputError
from trainmaster.profiles.profile import Profile
from trainmaster.profiles.readers.native import document_of


def write_profile(profile: Profile, path: str | Path) -> None:
    """Write a profile in Trainmaster's own format; reading it again gives an equal profile.

    YAML when the name ends in ``.yaml`` or ``.yml``, JSON when in ``.json``; ``.gz`` behind
    it packs the file. The same profile gives the same bytes. The file appears complete or not at all.

    Raises:
        InputError: another ending, or the file can't be written.
    """
    path = Path(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if suffix not in (".json", ".yaml", ".yml"):
        raise InputError(
            "is the name of no profile", file=path, mend="end it in .yaml or .json, or these with .gz"
        )
    document = document_of(profile)
    if suffix == ".json":
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    else:
        import yaml

        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    data = text.encode()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            unfinished.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", file=path) from error
