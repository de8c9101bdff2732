"""Admission: what may change an object or refuse it between a request and the store.

    mutate     NamespaceLifecycle, ServiceAccount, hooks of our own kinds, mutating webhooks: in this order, one by one
    validate   RBAC escalation, hooks of our own kinds, validating webhooks

Which of them concern a kind is worked out once; a kind that concerns nobody costs a dictionary lookup. ResourceQuota
and LimitRange are not here: the embedded management cluster runs no Pods.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from homeport.apiserver.request import Context
from homeport.apiserver.resource import Json, ServedKind, Version

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
WRITES = (CREATE, UPDATE)
ALL = "*"


@dataclass(slots=True)
class Attributes:
    """One request on its way. `object` and `old` are in version `at`; mutators may change or replace `object`."""

    ctx: Context
    served: ServedKind
    version: Version
    namespace: str
    name: str
    operation: str
    subresource: str = ""
    object: Json | None = None
    old: Json | None = None
    options: Json = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)  # what webhooks want in the audit log

    @property
    def dry_run(self) -> bool:
        return self.ctx.dry_run


# A hook gets the attributes. A mutating one may return another object; None keeps the one it got (changed in place or
# not). A validating one raises an ApiError to refuse.
Hook = Callable[[Attributes], Any]
Step = Callable[[Attributes], Awaitable[Json | None]]


class Plugin(Protocol):
    """Something that looks at many kinds. It says beforehand which, and calls `Admission.forget` when that changes."""

    def mutates(self, served: ServedKind, operation: str, subresource: str) -> bool: ...

    def validates(self, served: ServedKind, operation: str, subresource: str) -> bool: ...

    async def mutate(self, attributes: Attributes) -> Json | None: ...

    async def validate(self, attributes: Attributes) -> None: ...


@dataclass(frozen=True, slots=True)
class _Registered:
    group: str
    plural: str
    operations: frozenset[str]
    subresources: frozenset[str]
    mutating: bool
    step: Step

    def concerns(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return (
            self.group in (ALL, served.group)
            and self.plural in (ALL, served.plural)
            and operation in self.operations
            and (subresource in self.subresources or ALL in self.subresources)
        )


Steps = tuple[Step, ...]
_Cache = dict[tuple[str, str, str, str], tuple[ServedKind, Steps]]


class Admission:
    def __init__(self) -> None:
        self._hooks: list[_Registered] = []
        self._first: list[Plugin] = []
        self._last: list[Plugin] = []
        self._mutating: _Cache = {}
        self._validating: _Cache = {}

    def on(
        self,
        group: str,
        plural: str,
        fn: Hook,
        operations: Iterable[str] = WRITES,
        *,
        mutating: bool = False,
        subresources: Iterable[str] = ("",),
    ) -> None:
        """Calls `fn`, plain or async, for requests on a kind. '*' stands for every group or plural or subresource."""
        registered = _Registered(group, plural, frozenset(operations), frozenset(subresources), mutating, _as_step(fn))
        self._hooks.append(registered)
        self.forget()

    def add(self, plugin: Plugin, *, last: bool = False) -> None:
        """Plugins run before the hooks, in the order added; those added as `last` (webhooks) after them."""
        (self._last if last else self._first).append(plugin)
        self.forget()

    def forget(self) -> None:
        """Clears the cached list of steps per kind."""
        self._mutating = {}
        self._validating = {}

    def mutates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return bool(self._mutators(served, operation, subresource))

    def validates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return bool(self._validators(served, operation, subresource))

    async def mutate(self, attributes: Attributes) -> Json:
        """The object to go on with: the one in `attributes`, perhaps changed, or another."""
        a = attributes
        for step in self._mutators(a.served, a.operation, a.subresource):
            changed = await step(a)
            if changed is not None:
                a.object = changed
        return cast(Json, a.object)

    async def validate(self, attributes: Attributes) -> None:
        a = attributes
        for step in self._validators(a.served, a.operation, a.subresource):
            await step(a)

    def _mutators(self, served: ServedKind, operation: str, subresource: str) -> Steps:
        return _cached(self._mutating, self._plan_mutation, served, operation, subresource)

    def _validators(self, served: ServedKind, operation: str, subresource: str) -> Steps:
        return _cached(self._validating, self._plan_validation, served, operation, subresource)

    def _plan_mutation(self, served: ServedKind, operation: str, subresource: str) -> Iterable[Step]:
        yield from (p.mutate for p in self._first if p.mutates(served, operation, subresource))
        yield from (h.step for h in self._hooks if h.mutating and h.concerns(served, operation, subresource))
        yield from (p.mutate for p in self._last if p.mutates(served, operation, subresource))

    def _plan_validation(self, served: ServedKind, operation: str, subresource: str) -> Iterable[Step]:
        if operation == DELETE:
            # A deletion can't be mutated, but mutating webhooks may refuse it; they are called first.
            yield from self._plan_mutation(served, operation, subresource)
        yield from (_quiet(p) for p in self._first if p.validates(served, operation, subresource))
        yield from (h.step for h in self._hooks if not h.mutating and h.concerns(served, operation, subresource))
        yield from (_quiet(p) for p in self._last if p.validates(served, operation, subresource))


def _cached(
    cache: _Cache,
    plan: Callable[[ServedKind, str, str], Iterable[Step]],
    served: ServedKind,
    operation: str,
    subresource: str,
) -> Steps:
    key = (served.group, served.plural, operation, subresource)
    known = cache.get(key)
    if known is None or known[0] is not served:
        known = cache[key] = (served, tuple(plan(served, operation, subresource)))
    return known[1]


def _as_step(fn: Hook) -> Step:
    if inspect.iscoroutinefunction(fn):
        return cast(Step, fn)

    async def step(attributes: Attributes) -> Json | None:
        return cast("Json | None", fn(attributes))

    return step


def _quiet(plugin: Plugin) -> Step:
    async def step(attributes: Attributes) -> Json | None:
        await plugin.validate(attributes)
        return None

    return step
