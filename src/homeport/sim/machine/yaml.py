"""YAML as the programs on a machine read and write it, by libyaml where that is there: ten times as fast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from yaml import YAMLError

__all__ = ["YAMLError", "dump", "load", "load_all"]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def load(text: str | bytes) -> Any:
    """The one document in the text. Raises YAMLError."""
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader


def load_all(text: str | bytes) -> Iterator[Any]:
    return yaml.load_all(text, Loader=_LOADER)


def dump(value: object) -> str:
    text: str = yaml.dump(value, Dumper=_DUMPER)
    return text
