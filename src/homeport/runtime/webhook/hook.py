"""What is registered about kinds: defaults, validation, warnings, conversion. Functions on objects as dicts.

They are written against one version of the kind; the caller converts to it first. A function may be `async` where
it has to look something up, but most are pure.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from homeport.api.meta import Object, Resource
from homeport.client.errors import Cause

Json = dict[str, Any]
T = TypeVar("T")
Causes = Iterable[Cause]

Default = Callable[[Json, Json | None], Awaitable[None] | None]  # (object, old or None): changes the object
Validate = Callable[[Json, Json | None], Causes | Awaitable[Causes]]  # nothing found: it is valid
ValidateDelete = Callable[[Json], Causes | Awaitable[Causes]]
Warn = Callable[[Json, Json | None], Iterable[str] | Awaitable[Iterable[str]]]
Convert = Callable[[Json, str], Json]  # (object, version): the object in that version

# What conversion may change of the metadata; everything else is carried over, as kube-apiserver insists.
_CONVERTIBLE = ("labels", "annotations")


class Converted(Protocol):
    """What is asked about objects that came in an older version than the hooks are written against.

    An API server holds objects to the schema of the version in which they come. Older versions are more lenient, and
    what gets by their schema would be stored as something that the newest version refuses.
    """

    def violations(self, new: Json, old: Json | None) -> list[Cause]: ...

    def renamed(self, cause: Cause) -> Cause: ...


class ConversionError(Exception):
    """An object can't be converted; says which and why."""


@dataclass(slots=True)
class KindHooks:
    """What is registered for one kind, in the order of registration."""

    resource: Resource
    defaults: list[Default] = field(default_factory=list)
    validators: list[Validate] = field(default_factory=list)
    deletions: list[ValidateDelete] = field(default_factory=list)
    warnings: list[Warn] = field(default_factory=list)
    converted: Converted | None = None

    @property
    def validates(self) -> bool:
        return bool(self.validators or self.warnings or self.converted)

    async def apply_defaults(self, obj: Json, old: Json | None) -> None:
        for fn in self.defaults:
            await settled(fn(obj, old))

    async def find_causes(self, obj: Json, old: Json | None) -> list[Cause]:
        return [cause for fn in self.validators for cause in await settled(fn(obj, old))]

    async def find_converted_causes(self, obj: Json, old: Json | None) -> list[Cause]:
        """As `find_causes`, of an object that came in an older version: fields are called as they are there."""
        if self.converted is None:
            return await self.find_causes(obj, old)
        wrong = self.converted.violations(obj, old)
        found = wrong or await self.find_causes(obj, old)  # what has the wrong form can't be judged further
        renamed = (self.converted.renamed(each) for each in found)
        return list(dict.fromkeys(renamed))  # a field of the older version may stand for several

    async def find_delete_causes(self, old: Json) -> list[Cause]:
        return [cause for fn in self.deletions for cause in await settled(fn(old))]

    async def find_warnings(self, obj: Json, old: Json | None) -> list[str]:
        return [text for fn in self.warnings for text in await settled(fn(obj, old))]


class Hooks:
    """Register first, then `install` into an embedded server or hand to a WebhookServer."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], KindHooks] = {}
        self._converters: dict[tuple[str, str], Convert] = {}

    def add(
        self,
        kind: type[Object] | Resource,
        *,
        default: Default | None = None,
        validate: Validate | None = None,
        validate_delete: ValidateDelete | None = None,
        warn: Warn | None = None,
    ) -> None:
        """Functions of a kind; those of several calls are all called, in order.

        `default(object, old)` fills in what the user left out, and must change nothing when it is called again.
        `validate(object, old)` gives the causes why a new or changed object is refused, `validate_delete(object)` why
        it may not be deleted, and `warn(object, old)` texts that the user sees though the request is granted.
        """
        known = self._of(kind)
        known.defaults += [default] if default else []
        known.validators += [validate] if validate else []
        known.deletions += [validate_delete] if validate_delete else []
        known.warnings += [warn] if warn else []

    def convert(self, group: str, kind: str, fn: Convert) -> None:
        """`fn(object, version)` gives the object in another version; it may change what it gets."""
        if (group, kind) in self._converters:
            raise ValueError(f"{kind}.{group} has a converter already")
        self._converters[group, kind] = fn

    def check_converted(self, kind: type[Object] | Resource, converted: Converted) -> None:
        """Objects that come in older versions of the kind are held to the schema of this one."""
        self._of(kind).converted = converted

    def _of(self, kind: type[Object] | Resource) -> KindHooks:
        resource = kind if isinstance(kind, Resource) else kind.__resource__
        known = self._kinds.setdefault((resource.group, resource.plural), KindHooks(resource))
        if known.resource != resource:
            raise ValueError(
                f"hooks of {resource.qualified} are written against version {known.resource.version} already: "
                f"write this one against it too, not against {resource.version}"
            )
        return known

    def __iter__(self) -> Iterator[KindHooks]:
        return iter(self._kinds.values())

    def find(self, group: str, plural: str) -> KindHooks | None:
        return self._kinds.get((group, plural))

    @property
    def conversions(self) -> list[tuple[str, str]]:
        """(group, kind) of everything with a converter."""
        return list(self._converters)

    def converted(self, obj: Json, version: str) -> Json:
        """The object in another version of its group. Raises ConversionError."""
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        group = api_version.rpartition("/")[0]
        fn = self._converters.get((group, kind))
        if fn is None:
            raise ConversionError(f"{kind} of {api_version} is not converted here")
        target = f"{group}/{version}"
        if api_version == target:
            return obj
        before = dict(obj.get("metadata") or {})
        try:
            result = fn(obj, version)
        except ConversionError:
            raise
        except Exception as error:  # the edge to functions of any kind: one object's trouble has to name the object
            name = "/".join(filter(None, (before.get("namespace"), before.get("name"))))
            raise ConversionError(
                f"{kind} {name} can't be converted from {api_version} to {target}: {error}"
            ) from error
        result["apiVersion"], result["kind"] = target, kind
        result["metadata"] = _carried_over(result.get("metadata") or {}, before)
        return result


def _carried_over(meta: Json, before: Json) -> Json:
    kept = {name: value for name, value in before.items() if name not in _CONVERTIBLE}
    kept.update({name: meta[name] for name in _CONVERTIBLE if meta.get(name) is not None})
    return kept


async def settled(result: T | Awaitable[T]) -> T:
    """The result of a function that may be async."""
    if inspect.isawaitable(result):
        return await result
    return result
