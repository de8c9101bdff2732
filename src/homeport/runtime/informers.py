"""The informers of a process, shared by all of its controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar, overload

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.protocol import Client, Query, Unreadable
from homeport.runtime.informer import Informer

O = TypeVar("O", bound=Object)


class Informers:
    """One informer per (kind, query)."""

    def __init__(self, client: Client, on_unreadable: Callable[[Unreadable, str], None] | None = None) -> None:
        self._client = client
        self._on_unreadable = on_unreadable
        self._informers: dict[tuple[Any, Query], Informer[Any]] = {}
        self._by_kind: dict[tuple[str, str], list[Informer[Any]]] = {}  # by group and plural
        self._spawn: Callable[[Informer[Any]], object] | None = None
        self._tasks: dict[tuple[Any, Query], asyncio.Task[None]] = {}

    @overload
    def get(self, kind: type[O], query: Query | None = None) -> Informer[O]: ...
    @overload
    def get(self, kind: Resource, query: Query | None = None) -> Informer[Unstructured]: ...

    def get(self, kind: type[Object] | Resource, query: Query | None = None) -> Informer[Any]:
        """The one for this kind and selection. May be asked for at any time; `kind` as in `Client`."""
        key = (kind, query or Query())
        if key not in self._informers:
            made = self._informers[key] = Informer(self._client, kind, query)
            made.on_unreadable = self._on_unreadable
            self._by_kind.setdefault(_place(made.resource), []).append(made)
            if self._spawn is not None:
                self._spawn(made)
        return self._informers[key]

    def start(self, create_task: Callable[..., object]) -> None:
        """Starts all informers; later ones start when they are created."""

        def spawn(informer: Informer[Any]) -> None:
            run: Coroutine[Any, Any, None] = informer.run()
            task = create_task(run, name=f"informer {informer.resource.qualified}")
            if isinstance(task, asyncio.Task):
                self._tasks[informer.kind, informer.query] = task

        self._spawn = spawn
        for informer in self:
            spawn(informer)

    def stop(self) -> None:
        self._spawn = None
        self._tasks.clear()

    def drop(self, kind: type[Object] | Resource, query: Query | None = None) -> None:
        """Drops an informer that is no longer needed, for example of an outdated version of a provider's kind."""
        key = (kind, query or Query())
        dropped = self._informers.pop(key, None)
        if dropped is None:
            return
        self._by_kind[_place(dropped.resource)].remove(dropped)
        if key in self._tasks:
            self._tasks.pop(key).cancel()

    def unreadable(self, namespace: str, *resources: Resource) -> str:
        """Which objects of these kinds in the namespace can't be read, and what to do about it; '' if all can.

        Such an object may be missing in its cache: ask this before acting because an object is missing.
        """
        said = {
            f"{resource.kind} {key}": why
            for resource in resources
            for informer in self.of(resource)
            for key, why in informer.unreadable.items()
            if key.namespace == namespace
        }
        if not said:
            return ""
        name, why = min(said.items())
        more = f" ({len(said) - 1} more)" if len(said) > 1 else ""
        return f"{name} can't be read: {why}{more}"

    def of(self, resource: Resource) -> Sequence[Informer[Any]]:
        """All informers of this kind, in any version."""
        return self._by_kind.get(_place(resource), [])

    def __iter__(self) -> Iterator[Informer[Any]]:
        return iter(list(self._informers.values()))


def _place(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural
