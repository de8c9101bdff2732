"""A provider's part of a platform's object, read in all of its spellings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.capi.platform import Fault, Origin
from homeport.infra.error import Misconfigured

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off", "")


class Part:
    """Values by their paths. What is wrong is collected in `faults`, so that all of it is reported at once."""

    def __init__(self, part: Mapping[str, Any]) -> None:
        self._part = part
        self.faults: list[Fault] = []

    def fault(self, field: str, message: str) -> None:
        self.faults.append(Fault(field, message))

    def get(self, path: str) -> Any:
        found: Any = self._part
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return found

    def one(self, *paths: str) -> tuple[str, Any]:
        """The value that is set under any of these paths, and its path. Two that differ are a fault."""
        found = [(path, value) for path in paths if (value := self.get(path)) not in (None, "", {}, [])]
        if not found:
            return paths[0], None
        first, value = found[0]
        for path, other in found[1:]:
            if other != value:
                self.fault(path, f"contradicts {first}: remove one of them")
        return first, value

    def text(self, *paths: str) -> str:
        path, value = self.one(*paths)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.fault(path, f"must be a string, not {value!r}")
            return ""
        return value.strip()


def read_bool(text: str, where: str) -> bool:
    """As people write it into Secrets. Raises Misconfigured."""
    if text.strip().lower() in TRUE:
        return True
    if text.strip().lower() in FALSE:
        return False
    raise Misconfigured(f"{where}: must be true or false")


def aliased(secret: Mapping[str, str], names: Iterable[str], origin: Origin) -> str:
    """The value under any of these keys. Values never appear in messages."""
    found = {name: secret[name].strip("\n") for name in names if secret.get(name, "").strip()}
    if len(set(found.values())) > 1:
        raise Misconfigured(f"{origin.secret}: the keys {' and '.join(found)} have different values: remove one")
    return next(iter(found.values()), "")


def raise_faults(faults: Iterable[Fault], origin: Origin) -> None:
    """All of them in one Misconfigured."""
    texts = [f"{origin.part}.{each.field}: {each.message}" if each.field else each.message for each in faults]
    if texts:
        raise Misconfigured("; ".join(texts))
