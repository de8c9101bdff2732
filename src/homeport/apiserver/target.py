"""The address of one request on one object, and what messages call it."""

from __future__ import annotations

from homeport.apiserver.resource import ServedKind, Version
from homeport.client.errors import ApiError, Cause, Conflict, Invalid, conflict, invalid, not_found

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class Target:
    """The address of one write, and what messages call it."""

    __slots__ = ("asked_finalizers", "called", "faults", "key", "name", "namespace", "served", "subresource", "version")

    def __init__(self, served: ServedKind, version: Version, namespace: str, name: str, subresource: str = "") -> None:
        self.served = served
        self.version = version
        self.namespace = namespace if served.namespaced else ""
        self.name = name
        self.subresource = subresource
        self.asked_finalizers: list[str] | None = None  # before admission added its own; None: it added nothing
        self.faults: list[Cause] = []  # what is wrong already before the object is validated
        self.called = served.kind  # the kind as the client called it
        self.key = f"{self.namespace}/{name}" if served.namespaced else name

    def rename(self, name: str) -> None:
        """The name is known: generated, or changed on the way."""
        self.name = name
        self.key = f"{self.namespace}/{name}" if self.served.namespaced else name

    def fault(self, cause: Cause) -> None:
        self.faults.append(cause)

    @property
    def _group(self) -> str:
        return self.served.group if self.served.known_as is None else self.served.known_as

    def not_found(self) -> ApiError:
        return not_found(self._group, self.served.plural, self.name)

    def conflict(self, why: str) -> Conflict:
        return conflict(self._group, self.served.plural, self.name, why)

    def precondition(self, why: str) -> Conflict:
        """A precondition of a deletion failed: such conflicts name the kind instead of the resource."""
        return conflict(self._group, self.served.kind, self.name, why)

    def invalid(self, causes: list[Cause]) -> Invalid:
        return invalid(self._group, self.called, self.name, causes)
