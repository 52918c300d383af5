"""A YAML file of one document, whose faults are told with file, line and key."""

from __future__ import annotations

from pathlib import Path
from reprlib import repr as shown
from typing import Any

import yaml

from trainmaster.model.errors import InputError

Key = tuple[str | int, ...]
"""The way to a value: keys of mappings, and places in lists from 0."""


class Document:
    """What a YAML file says.

    Attributes:
        file: its path, as given.
        value: the document: dicts, lists and scalars; None when it is empty.

    Raises:
        InputError: it can't be read, isn't YAML, or a key stands twice in it.
    """

    def __init__(self, path: str | Path) -> None:
        self.file = path
        self._root, self.value = _parse(Path(path))

    def fault(self, message: str, key: Key = (), mend: str | None = None) -> InputError:
        """The error that says what is wrong with the value that `key` leads to."""
        return InputError(message, file=self.file, row=self.line(key), column=key_text(key), mend=mend)

    def line(self, key: Key) -> int | None:
        """The line, from 1, where the value of this key is written; where it is missing, that of
        the mapping or list that lacks it."""
        node, mark = self._root, self._root.start_mark if self._root else None
        for part in key:
            found = _step(node, part)
            if found is None:
                break
            mark, node = found
        return mark.line + 1 if mark else None


def key_text(key: Key) -> str | None:
    """A key in words; None for the whole document.

    >>> key_text(("nodes", 0, "gpus"))
    'nodes[1].gpus'
    """
    text = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in key)
    return text.removeprefix(".") or None


def _step(node: yaml.Node | None, part: str | int) -> tuple[yaml.Mark, yaml.Node] | None:
    """Where the entry begins that a mapping or a list has under this key, and its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        entry = node.value[part]
        return entry.start_mark, entry
    if isinstance(node, yaml.MappingNode):
        # The last one counts: those merged in by << come first.
        for key, value in reversed(node.value):
            if key.value == str(part):
                return key.start_mark, value
    return None


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, where PyYAML would take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"key {shown(key.value)} stands twice"
                    raise yaml.constructor.ConstructorError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _parse(path: Path) -> tuple[yaml.Node | None, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", file=path) from None
    except UnicodeDecodeError:
        raise InputError("not a text file", file=path, mend="write YAML in UTF-8") from None
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            return root, None if root is None else loader.construct_document(root)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise InputError(_line(problem), file=path, row=mark.line + 1 if mark else None) from None
    # PyYAML leaves faults of tagged values ("!!int x", a month 13) as whatever Python raised.
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(f"not valid YAML: {_line(error)}", file=path) from None


def _line(message: object) -> str:
    return " ".join(str(message).split())[:200]
