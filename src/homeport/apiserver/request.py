"""Who asks, and with which options: what every verb of the registry gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """As reviews and certificate requests name the user; what is empty is left out."""
        extra = {key: list(values) for key, values in self.extra.items()}
        more = {"uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {"username": self.name, **{field: value for field, value in more.items() if value}}


SYSTEM = User("system:apiserver", ("system:masters", "system:authenticated"))
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


@dataclass(slots=True)
class Context:
    """One request. `warnings` collects what goes into Warning headers."""

    user: User
    field_manager: str = ""  # the query parameter; falls back on the user agent's first part
    user_agent: str = ""
    dry_run: bool = False
    field_validation: str = "Warn"  # Strict, Warn, Ignore
    warnings: list[str] = field(default_factory=list)
    wrote: bool = False  # something was stored: a write that changes nothing, or a dry run, stores nothing
    may_create: Callable[[], None] = lambda: None  # raises Forbidden: a PATCH or PUT is about to create the object

    def warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)

    @property
    def manager(self) -> str:
        """The name in managedFields, as Kubernetes derives it."""
        return self.field_manager or self.user_agent.split("/", 1)[0] or "unknown"
