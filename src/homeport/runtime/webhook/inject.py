"""Puts our CA where API servers look for it: webhook configurations and the conversion of definitions.

Concerned are objects whose annotation names our Secret and, where names were given beforehand, only these: nobody
else's configuration is touched. Only names are kept in memory, as definitions are large. Nothing is written where the
CA is there already. All replicas write the same, the content of the Secret they share.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, JsonPatch, Key, Query, Write
from homeport.runtime.queue import Backoff, WorkQueue
from homeport.runtime.webhook.configuration import DEFINITION, INJECT_ANNOTATION, MUTATING, VALIDATING
from homeport.runtime.webhook.follow import follow

log = structlog.get_logger(__name__)

Operation = dict[str, Any]
Target = tuple[Resource, str]

KINDS = (MUTATING, VALIDATING, DEFINITION)
_WRITE = Write(field_manager="homeport-webhook")


def plan_injection(kind: Resource, obj: Mapping[str, Any], bundle: str) -> list[Operation]:
    """The JSON patch that puts `bundle` (base64) into an object; empty when nothing is to be done."""
    return list(_plan_definition(obj, bundle) if kind == DEFINITION else _plan_configuration(obj, bundle))


def _plan_configuration(obj: Mapping[str, Any], bundle: str) -> Iterator[Operation]:
    for i, webhook in enumerate(obj.get("webhooks") or ()):
        if (webhook.get("clientConfig") or {}).get("caBundle") != bundle:
            # Somebody may reorder the list meanwhile: then the patch fails, and we look again.
            yield {"op": "test", "path": f"/webhooks/{i}/name", "value": webhook.get("name")}
            yield {"op": "add", "path": f"/webhooks/{i}/clientConfig/caBundle", "value": bundle}


def _plan_definition(obj: Mapping[str, Any], bundle: str) -> Iterator[Operation]:
    conversion = (obj.get("spec") or {}).get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig")
    if conversion.get("strategy") == "Webhook" and client and client.get("caBundle") != bundle:
        yield {"op": "test", "path": "/spec/conversion/strategy", "value": "Webhook"}
        yield {"op": "add", "path": "/spec/conversion/webhook/clientConfig/caBundle", "value": bundle}


class Injector:
    """`offer` it a CA whenever there is another one; `run` until cancelled."""

    def __init__(self, client: Client, secret: Key, listed: Mapping[Resource, Sequence[str]] | None = None) -> None:
        self._client = client
        self._secret = secret
        self._listed = None if listed is None else {(kind, name) for kind, names in listed.items() for name in names}
        self._concerned: set[Target] = set()
        self._unseen = set(KINDS)  # of which not everything was seen yet
        self._done: dict[Target, str] = {}  # what each was last seen to hold
        self._bundle = ""
        self._queue: WorkQueue[Target] = WorkQueue(backoff=Backoff(first=0.1, limit=30.0))

    def offer(self, bundle: bytes) -> None:
        self._bundle = base64.b64encode(bundle).decode()
        for target in self._concerned:
            self._queue.add(target)

    @property
    def missing(self) -> list[str]:
        """Our objects that do not hold our CA yet. An object that does not exist is none of them: nobody is asked."""
        late = [t for t in self._concerned if not self._bundle or self._done.get(t) != self._bundle]
        return sorted([*(kind.plural for kind in self._unseen), *(f"{kind.kind} {name}" for kind, name in late)])

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work())
            for kind in KINDS:
                seen = partial(self._unseen.discard, kind)
                group.create_task(follow(self._client, kind, Query(), partial(self._look, kind), seen))

    def _look(self, kind: Resource, obj: Unstructured, deleted: bool) -> None:
        target = (kind, obj.name)
        if deleted or not self._is_ours(target, obj):
            self._done.pop(target, None)
            self._concerned.discard(target)
            return
        self._concerned.add(target)
        if self._bundle and not plan_injection(kind, obj, self._bundle):
            self._done[target] = self._bundle
        else:
            self._queue.add(target)

    def _is_ours(self, target: Target, obj: Mapping[str, Any]) -> bool:
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        return annotations.get(INJECT_ANNOTATION) == str(self._secret) and (
            self._listed is None or target in self._listed
        )

    async def _work(self) -> None:
        try:
            while True:
                target = await self._queue.get()
                try:
                    await self._inject(*target)
                    self._queue.forget(target)
                except ApiError as error:
                    pause = self._queue.retry(target)
                    log.warning("CA not injected", object=target[1], error=str(error), retry_in=round(pause, 1))
                finally:
                    self._queue.done(target)
        finally:
            self._queue.close()

    async def _inject(self, kind: Resource, name: str) -> None:
        bundle = self._bundle
        if not bundle or (kind, name) not in self._concerned:
            return
        try:
            obj = await self._client.get(kind, Key("", name))
        except NotFound:
            self._done.pop((kind, name), None)
            return  # a watch event follows when it is created
        if not self._is_ours((kind, name), obj):
            return
        operations = plan_injection(kind, obj, bundle)
        if operations:
            await self._client.patch(kind, Key("", name), JsonPatch(operations), _WRITE)
            log.info("CA injected", kind=kind.kind, name=name)
        self._done[kind, name] = bundle
