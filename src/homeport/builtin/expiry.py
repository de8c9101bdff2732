"""What ends by itself: Events, bootstrap tokens, Leases of members that are long gone."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.account import SECRET
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, Query
from homeport.runtime.clock import parse_time
from homeport.runtime.controller import Controller
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.shard import GROUP_LABEL

log = structlog.get_logger(__name__)

EVENT = Resource("", "v1", "Event", "events")
EVENT_SECONDS = 3600.0
LEASE_SECONDS = 3600.0
BOOTSTRAP_TYPE = "bootstrap.kubernetes.io/token"

# When an object ends, in seconds since 1970; None: never.
Deadline = Callable[[Unstructured], float | None]


class Expiry:
    """Deletes objects at their time, with a precondition: an object that was renewed meanwhile stays."""

    def __init__(self, client: Any, kind: Resource, deadline: Deadline, now: Callable[[], float]) -> None:
        self._client = client
        self._kind = kind
        self._deadline = deadline
        self._now = now

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            obj = await self._client.get(self._kind, key)
        except NotFound:
            return None
        end = self._deadline(obj)
        if end is None or obj.metadata.get("deletionTimestamp"):
            return None
        left = end - self._now()
        if left > 0:
            return Wait("NotExpired", after=left, quiet=True)
        try:
            await self._client.delete(self._kind, key, uid=obj.uid, resource_version=obj.resource_version)
        except NotFound:
            return None
        log.debug("expired", kind=self._kind.kind, object=str(key))
        return None


def event_end(event: Unstructured) -> float | None:
    """An hour after it was last seen; for a series, after its last observation."""
    series = event.get("series") or {}
    for text in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if text:
            return _time(text, EVENT_SECONDS)
    return _time(event.metadata.get("creationTimestamp"), EVENT_SECONDS)


def bootstrap_token_end(secret: Unstructured) -> float | None:
    if secret.get("type") != BOOTSTRAP_TYPE or secret.namespace != "kube-system":
        return None
    try:
        text = base64.b64decode((secret.get("data") or {}).get("expiration") or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return _time(text, 0.0)


def lease_end(lease: Unstructured) -> float | None:
    """Members' leases alone: a leader's lease is taken over, never removed."""
    if GROUP_LABEL not in (lease.metadata.get("labels") or {}):
        return None
    spec = lease.get("spec") or {}
    return _time(spec.get("renewTime"), float(spec.get("leaseDurationSeconds") or 0) + LEASE_SECONDS)


def _time(text: Any, plus: float) -> float | None:
    if not text:
        return None
    try:
        return parse_time(str(text)) + plus
    except ValueError:
        return None


def install(server: EmbeddedServer, manager: Manager) -> None:
    now = server.registry.clock
    for name, kind, deadline, query in (
        ("event-expiry", EVENT, event_end, Query()),
        ("bootstrap-token-expiry", SECRET, bootstrap_token_end, Query(namespace="kube-system")),
        ("lease-expiry", LEASE, lease_end, Query(labels=GROUP_LABEL)),
    ):
        reconciler = Expiry(manager.client, kind, deadline, now)
        manager.add(Controller(name, kind, reconciler, query=query, workers=1, clock=manager.clock))
