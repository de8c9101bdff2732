"""Replicas that a HorizontalPodAutoscaler sets: an add-on does not take them back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Query

Json = dict[str, Any]
AUTOSCALER = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")


async def scaled(client: Client, body: Json, live: Mapping[str, Any]) -> Json:
    """`body` with the live number of replicas if an autoscaler sets it, otherwise `body` itself. Raises ApiError."""
    wanted, found = _replicas(body), _replicas(live)
    if wanted is None or found is None or wanted == found or not await _has_autoscaler(client, body, live):
        return body
    return {**body, "spec": {**body["spec"], "replicas": found}}


def contains(live: Any, body: Any) -> bool:
    """Whether the live object has every field of `body` with its value: then there is nothing to apply."""
    if isinstance(body, Mapping):
        return isinstance(live, Mapping) and all(contains(live.get(name), below) for name, below in body.items())
    if isinstance(body, list):
        return isinstance(live, list) and len(live) == len(body) and all(map(contains, live, body))
    return bool(live == body)


async def _has_autoscaler(client: Client, body: Json, live: Mapping[str, Any]) -> bool:
    meta = live.get("metadata") or {}
    try:
        found = (await client.list(AUTOSCALER, Query(namespace=str(meta.get("namespace", ""))))).items
    except NotFound:
        return False
    group = str(body.get("apiVersion", "")).rpartition("/")[0]
    for each in found:
        target = (each.get("spec") or {}).get("scaleTargetRef") or {}
        own = str(target.get("apiVersion", "")).rpartition("/")[0]
        if (own, target.get("kind"), target.get("name")) == (group, body.get("kind"), meta.get("name")):
            return True
    return False


def _replicas(obj: Mapping[str, Any]) -> int | None:
    spec = obj.get("spec")
    found = spec.get("replicas") if isinstance(spec, Mapping) else None
    return found if isinstance(found, int) and not isinstance(found, bool) else None
