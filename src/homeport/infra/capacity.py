"""What a machine made from a template would have, in the template's status: autoscalers start from nothing by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homeport.api.meta import Object
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.cache import Cache
from homeport.runtime.manager import Manager


class CapacityReconciler:
    def __init__(
        self, manager: Manager, kind: type[Object], capacity: Callable[[Any], Mapping[str, Any]], provider: str
    ) -> None:
        self._client = manager.client
        self._kind = kind
        self._templates: Cache[Any] = manager.informers.get(kind).cache
        self._capacity = capacity
        self._write = Write(field_manager=f"homeport-{provider}")

    async def reconcile(self, key: Key) -> None:
        template = self._templates.get(key)
        if template is None or template.metadata.deletion_timestamp:
            return
        wanted, status = dict(self._capacity(template)), template.status
        if dict(status.capacity) == wanted:
            return
        gone = {name: None for name in status.capacity if name not in wanted}
        body = {"metadata": {"uid": template.metadata.uid}, "status": {"capacity": {**wanted, **gone}}}
        try:
            await self._client.patch(self._kind, key, MergePatch(body), self._write, subresource="status")
        except NotFound:
            return
