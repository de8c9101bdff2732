"""Objects as text that people and kubectl read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import yaml


class _Plain(yaml.CSafeDumper):
    """Anchors would spare lines and confuse readers."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_all(objects: Iterable[Mapping[str, Any]]) -> str:
    return "".join(f"---\n{write(each)}" for each in objects)


def write(obj: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(obj), Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)
    return text
