"""What a profile reader is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from trainmaster.profiles.document import Source
from trainmaster.profiles.profile import Profile


class Reader(ABC):
    """One source of profiles. One file holds one reader."""

    name: ClassVar[str]
    """The word for the format."""
    wanted: ClassVar[str]
    """What to give, in a few words, for messages."""
    citation: ClassVar[str]
    """Where the figures are published, in one line."""

    @abstractmethod
    def detect(self, source: Source) -> bool:
        """Whether this is the format."""

    @abstractmethod
    def read(self, source: Source) -> Profile:
        """The profile; raises `InputError` that names file and key for a value at fault."""


def first_of(value: object) -> tuple[object, object]:
    """First key and value of a mapping, for recognizing formats; (None, None) when it is none."""
    return next(iter(value.items()), (None, None)) if isinstance(value, dict) else (None, None)
