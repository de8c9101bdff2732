"""Events about simulators, on the Pod that shows their logs: so they are part of the timeline."""

from __future__ import annotations

import uuid

from homeport.client.protocol import Client, Write
from homeport.runtime.clock import SystemClock, rfc3339
from homeport.runtime.event import CORE

_POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "homeport-system", "name": "homeport"}
_COMPONENT = "homeport-simulator"
_MOST_TEXT = 1000


class SimulatorEvents:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def write(self, reason: str, message: str) -> None:
        when = rfc3339(SystemClock().now())
        body = {
            "metadata": {"name": f"homeport.{uuid.uuid4().hex[:16]}", "namespace": _POD["namespace"]},
            "involvedObject": _POD,
            "type": "Warning" if reason == "FaultInjected" else "Normal",
            "reason": reason,
            "message": message[:_MOST_TEXT],
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
        }
        await self._client.create(body, Write(field_manager=_COMPONENT), kind=CORE)
