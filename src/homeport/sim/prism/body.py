"""Reading JSON bodies field by field. Errors name the path of the attribute."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.sim.prism.error import invalid


class Body:
    """An object in a request. Missing fields are defaults; fields of a wrong type are refused."""

    def __init__(self, value: Any, path: str = "") -> None:
        if not isinstance(value, dict):
            raise invalid(path or "body", "must be an object")
        self.value: dict[str, Any] = value
        self.path = path

    def _at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        return self.value.get(name) is not None

    def text(self, name: str, default: str = "", *, choices: tuple[str, ...] = (), longest: int = 0) -> str:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise invalid(self._at(name), "must be a string")
        if choices and value not in choices:
            raise invalid(self._at(name), f"must be one of {', '.join(choices)}")
        if longest and len(value) > longest:
            raise invalid(self._at(name), f"must have at most {longest} characters")
        return value

    def required_text(self, name: str) -> str:
        value = self.text(name)
        if not value:
            raise invalid(self._at(name), "is required")
        return value

    def integer(self, name: str, default: int = 0) -> int:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            raise invalid(self._at(name), "must be a whole number")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise invalid(self._at(name), "must be true or false")
        return value

    def object(self, name: str) -> Body | None:
        value = self.value.get(name)
        return None if value is None else Body(value, self._at(name))

    def objects(self, name: str) -> Iterator[Body]:
        for number, value in enumerate(self._list(name)):
            yield Body(value, f"{self._at(name)}[{number}]")

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise invalid(self._at(name), "must be a list of strings")
        return tuple(values)

    def integers(self, name: str) -> tuple[int, ...]:
        values = self._list(name)
        if not all(isinstance(value, int) for value in values):
            raise invalid(self._at(name), "must be a list of whole numbers")
        return tuple(values)

    def _list(self, name: str) -> list[Any]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise invalid(self._at(name), "must be a list")
        return value

    def mapping(self, name: str) -> dict[str, tuple[str, ...]]:
        """A text, or several, under each key."""
        inner = self.object(name)
        if inner is None:
            return {}
        return {
            key: inner.texts(key) if isinstance(value, list) else (inner.required_text(key),)
            for key, value in inner.value.items()
        }

    def reference(self, name: str, field: str = "extId") -> str:
        inner = self.object(name)
        return inner.text(field) if inner is not None else ""
