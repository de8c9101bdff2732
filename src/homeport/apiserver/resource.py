"""What the server serves: one `ServedKind` per kind, one `Version` per version of it, all in one `Catalog`.

Built-in kinds and kinds of CustomResourceDefinitions are the same thing from here on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from homeport.api.meta import Resource
from homeport.apiserver.name import dns_subdomain
from homeport.client.errors import Cause
from homeport.machinery.schema.node import Schema

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. `read` takes the object and gives the cell."""

    name: str
    type: str
    format: str = ""
    priority: int = 0
    description: str = ""
    read: Callable[[Json], Any] = lambda obj: None


@dataclass(frozen=True, slots=True)
class Scale:
    """JSON paths (dotted, with a leading dot) of the scale subresource."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


class Strategy(Protocol):
    """Per-kind behaviour beyond the schema. Plain functions on dicts; the object may be changed in place."""

    def default(self, obj: Json) -> None:
        """Defaults that a schema can't express. Runs on create and update, before validation."""

    def prepare_create(self, obj: Json) -> None:
        """Clear or set what the writer may not (status, phases)."""

    def prepare_update(self, obj: Json, old: Json) -> None:
        """Carry over what the writer may not change."""

    def prepare_delete(self, obj: Json, now: str) -> None:
        """Add finalizers without which the kind can't be deleted."""

    def validate(self, obj: Json, old: Json | None) -> list[Cause]: ...

    def fields(self, obj: Json) -> Mapping[str, str]:
        """Fields that field selectors may name, besides metadata.name and metadata.namespace."""


class SubresourceStrategy(Protocol):
    """A subresource through which only a part of the object can be written (approval, ephemeralcontainers, resize)."""

    def prepare(self, obj: Json, old: Json) -> None:
        """Puts everything else back to what it was."""

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        """Instead of the strategy's rules."""


class Checker(Protocol):
    """Structural work on objects of one version: what machinery.schema (and CEL) compile to."""

    def prune(self, obj: Json) -> list[str]:
        """Drops undeclared fields in place; returns their paths (`spec.foo`)."""

    def default(self, obj: Json) -> None: ...

    def settle(self, obj: Json) -> list[str]:
        """`prune` and `default` in one walk."""

    def validate(self, obj: Json, old: Json | None, *, flawed: bool = False) -> Iterable[tuple[str, str, str]]:
        """(reason, message, field) of everything that is wrong. `flawed`: so is the metadata; no rules are run."""

    def validate_status(self, obj: Json, old: Json, *, flawed: bool = False) -> Iterable[tuple[str, str, str]]:
        """The same for a write to the status, which is not held to account for the rest of the object."""


@dataclass(slots=True)
class Version:
    """One served (or stored) version of a kind."""

    resource: Resource
    schema: Schema | None
    checker: Checker
    served: bool = True
    status: bool = False  # has a status subresource
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()  # JSON paths of selectable fields, e.g. ".spec.clusterName"
    deprecation: str = ""  # warning text sent with every answer
    raw_schema: Mapping[str, Any] | None = None  # OpenAPI v3, for publishing


@dataclass(slots=True)
class ServedKind:
    """A kind in all its versions. `bucket` is where the store keeps it."""

    group: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    storage: str  # the version that is stored
    versions: dict[str, Version]
    strategy: Strategy
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    custom: bool = False  # from a CustomResourceDefinition
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    subresources: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)  # extra ones: name > (g, v, kind)
    subresource_verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # where they are not the usual ones
    subresource_strategies: Mapping[str, SubresourceStrategy] = field(
        default_factory=dict
    )  # rules of their own for some subresources
    convert: Callable[[Json, str], Json] | None = None  # (object, version) > object in that version; None: rename only
    convert_async: Callable[[list[Json], str], Awaitable[list[Json]]] | None = None  # by webhook; wins over convert
    stored_as: str = ""  # the bucket, where it is not plural.group (events.k8s.io shares the core group's)
    known_as: str | None = None  # the group that refusals name, where it is not the one asked
    field_names: tuple[str, ...] = ()  # what field selectors may name besides metadata and selectable fields
    naming: Callable[[str], str | None] = dns_subdomain  # what is wrong with a name, or None
    spec_generation: bool = True  # metadata.generation counts changes of the spec
    annotation_generation: bool = False  # and of the annotations
    create_on_update: bool = False  # PUT of an absent object creates it
    needs_version: bool = False  # PUT must say which resourceVersion it replaces (custom kinds always)
    returns_deleted: bool = False  # DELETE answers with the object instead of a Status
    graceful: bool = False  # Pods: deletion sets a timestamp and waits for the grace period
    etag: str = ""  # changes whenever the definition does (for discovery and OpenAPI caches)

    @property
    def bucket(self) -> str:
        return self.stored_as or (f"{self.plural}.{self.group}" if self.group else self.plural)

    def version(self, name: str) -> Version | None:
        found = self.versions.get(name)
        return found if found is not None and found.served else None


class Catalog:
    """Every served kind, by group and plural. `changed` counts additions and removals: caches key on it."""

    def __init__(self) -> None:
        self._by_plural: dict[tuple[str, str], ServedKind] = {}
        self._by_kind: dict[tuple[str, str], ServedKind] = {}
        self.changed = 0

    def add(self, served: ServedKind) -> None:
        """Adds or replaces."""
        self._by_plural[served.group, served.plural] = served
        self._by_kind[served.group, served.kind] = served
        self.changed += 1

    def remove(self, group: str, plural: str) -> None:
        served = self._by_plural.pop((group, plural), None)
        if served is not None:
            self._by_kind.pop((group, served.kind), None)
            self.changed += 1

    def find(self, group: str, version: str, plural: str) -> tuple[ServedKind, Version] | None:
        served = self._by_plural.get((group, plural))
        found = served.version(version) if served else None
        return (served, found) if served and found else None

    def by_plural(self, group: str, plural: str) -> ServedKind | None:
        return self._by_plural.get((group, plural))

    def by_kind(self, group: str, kind: str) -> ServedKind | None:
        return self._by_kind.get((group, kind))

    def group(self, group: str) -> list[ServedKind]:
        return [s for (g, _), s in self._by_plural.items() if g == group]

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(self._by_plural.values())

    def groups(self) -> Iterable[str]:
        return sorted({g for g, _ in self._by_plural})
