"""pods/portforward: connections to ports of Pods, opened by the runner that runs them.

Nothing here runs containers. A component that does, or pretends to, sets `dial`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import orjson

from homeport.apiserver.registry import Call, Forward, Registry
from homeport.apiserver.resource import Json
from homeport.client.errors import BadRequest, not_found

DialPod = Callable[[Json, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class PodPorts:
    """`dial` is given the Pod and the port; it raises OSError for what can't be reached. None: no Pod runs here."""

    def __init__(self) -> None:
        self.dial: DialPod | None = None

    def install(self, registry: Registry) -> None:
        async def connector(call: Call) -> Forward:
            # A WebSocket can only be opened with GET, yet who may only read must not get into a Pod.
            call.ctx.may_create()
            record = registry.store.get("pods", f"{call.namespace}/{call.name}")
            if record is None:
                raise not_found("", "pods", call.name)
            return self._answer(orjson.loads(record.value))

        registry.connect("", "pods", "portforward", connector, "GET", "POST")

    def _answer(self, pod: Json) -> Forward:
        meta = pod["metadata"]
        if self.dial is None:
            raise BadRequest(
                f"ports of pod {meta['name']} can't be forwarded: this API server has no nodes, so no pod runs here; "
                "ask the API server of the cluster whose nodes run it"
            )
        if not (pod.get("spec") or {}).get("nodeName"):
            raise BadRequest(f"pod {meta['name']} does not have a host assigned")
        return Forward(f"pod {meta['name']}, uid {meta['uid']}", partial(self.dial, pod))
