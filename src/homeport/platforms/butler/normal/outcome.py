"""What reading an object gives: a model, or what is wrong with it and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a field, and what to do. `required`: the field is missing rather than wrong."""

    field: str
    message: str
    required: bool = False

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class Normal(Generic[T]):
    """`model` is None if there are faults."""

    model: T | None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All faults in one sentence each, for a condition."""
        return "; ".join(map(str, self.faults))


@dataclass(slots=True)
class Reading:
    """Collects faults and warnings while one object is read."""

    faults: list[Fault] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fault(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, message))

    def missing(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, message, required=True))

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def either(self, *spellings: tuple[str, T | None], same: Callable[[Any], Any] | None = None) -> T | None:
        """The value of a field that has several spellings. Two that differ are a fault of the later one."""
        value, path = None, ""
        for at, given in spellings:
            if not is_given(given):
                continue
            if value is None:
                value, path = given, at
            elif given is not None and _key(given, same) != _key(value, same):
                self.fault(at, f"{shown(given)} contradicts {path} ({shown(value)}): set only one of them")
        return value

    def result(self, make: Callable[[], T]) -> Normal[T]:
        """`make` is called only if there are no faults."""
        model = None if self.faults else make()
        return Normal(model, tuple(self.faults), tuple(self.warnings))


def _key(value: object, same: Callable[[Any], Any] | None) -> Any:
    return value if same is None else same(value)


def is_given(value: object) -> bool:
    return value is not None and value not in ("", [], {})


def shown(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
