"""The same registrations on the embedded server: no wire, no certificates, the same results."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable
from typing import TypeVar

import orjson
import structlog

from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.verb.admission import DELETE, WRITES, Attributes
from homeport.apiserver.view import to_version
from homeport.client.errors import ApiError, Internal
from homeport.runtime.webhook.hook import ConversionError, Convert, Hooks, Json, KindHooks
from homeport.runtime.webhook.review import refusal

T = TypeVar("T")

log = structlog.get_logger(__name__)


def install(hooks: Hooks, server: EmbeddedServer) -> None:
    """Call once, when everything is registered, before the first request for these kinds."""
    for kind in hooks:
        _InProcess(kind).join(server)
    for group, name in hooks.conversions:
        convert = server.conversions[group, name] = _converter(hooks)
        # A definition that the store held already was put up before anybody could register.
        for served in server.catalog.group(group):
            if served.kind == name:
                served.convert, served.convert_async = convert, None


def _converter(hooks: Hooks) -> Convert:
    def convert(obj: Json, version: str) -> Json:
        try:
            return hooks.converted(obj, version)
        except ConversionError as error:
            raise Internal(f"conversion of {obj.get('apiVersion')}, Kind={obj.get('kind')} failed: {error}") from error

    return convert


class _InProcess:
    def __init__(self, kind: KindHooks) -> None:
        self._kind = kind

    def join(self, server: EmbeddedServer) -> None:
        kind, on = self._kind, server.admission.on
        group, plural = kind.resource.group, kind.resource.plural
        if kind.defaults:
            on(group, plural, self._default, WRITES, mutating=True)
        if kind.validates:
            # A scale arrives as the whole object with another count: what holds for the one holds for the other.
            on(group, plural, self._validate, WRITES, subresources=("", "scale"))
        if kind.deletions:
            on(group, plural, self._validate_delete, (DELETE,))

    async def _default(self, a: Attributes) -> Json | None:
        if a.object is None:
            return None
        if self._speaks(a):
            await self._guarded(self._kind.apply_defaults(a.object, a.old))
            return None
        shown = await self._shown(a.object, a)
        before = orjson.dumps(shown)
        await self._guarded(self._kind.apply_defaults(shown, await self._shown(a.old, a) if a.old else None))
        if orjson.dumps(shown) == before:
            return None
        version = a.version.resource
        return (await to_version([shown], a.served, version.version, version.api_version))[0]

    async def _validate(self, a: Attributes) -> None:
        if a.object is None:
            return
        obj, old = await self._shown(a.object, a), await self._shown(a.old, a) if a.old else None
        find = self._kind.find_causes if self._speaks(a) else self._kind.find_converted_causes
        causes = await self._guarded(find(obj, old))
        if causes:
            raise refusal(self._kind, a.name, causes)
        for text in await self._guarded(self._kind.find_warnings(obj, old)):
            a.ctx.warn(text)

    async def _validate_delete(self, a: Attributes) -> None:
        if a.old is None:
            return
        causes = await self._guarded(self._kind.find_delete_causes(await self._shown(a.old, a)))
        if causes:
            raise refusal(self._kind, a.name, causes)

    def _speaks(self, a: Attributes) -> bool:
        return a.version.resource.version == self._kind.resource.version

    async def _shown(self, obj: Json, a: Attributes) -> Json:
        """The object in the version that the hooks are written against."""
        if self._speaks(a):
            return obj
        wanted = self._kind.resource
        copy = orjson.loads(orjson.dumps(obj))  # converters may change what they get
        return (await to_version([copy], a.served, wanted.version, wanted.api_version))[0]

    async def _guarded(self, work: Awaitable[T]) -> T:
        """A hook that breaks is the server's failure, as it is where it answers as a webhook."""
        try:
            return await work
        except ApiError:
            raise
        except Exception as error:
            # As text: loggers that draw exceptions show local variables, and those hold objects.
            log.error("a hook failed", kind=self._kind.resource.qualified, traceback=traceback.format_exc())
            why = f"a hook of {self._kind.resource.qualified} failed: {type(error).__name__}: {error}"
            raise Internal(f"Internal error occurred: {why}") from error
