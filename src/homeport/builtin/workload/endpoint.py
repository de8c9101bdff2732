"""Endpoints and EndpointSlices of Services that select Pods. Services without a selector are left alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.option import DeleteOptions
from homeport.apiserver.request import SYSTEM, Context
from homeport.apiserver.resource import Json, ServedKind, Strategy, Version
from homeport.apiserver.webhook.endpoint import target_port
from homeport.client.errors import Cause, NotFound
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import (
    POD,
    SERVICE,
    controller_ref,
    deleting,
    phase,
    ready_since,
    spec_of,
    status_of,
)
from homeport.runtime.workload.runner import NODE

ENDPOINTS = Resource("", "v1", "Endpoints", "endpoints")
SLICE = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
_MANAGER = "homeport-endpoints"
_SERVICE_LABEL = "kubernetes.io/service-name"
_ENDPOINTS_LABEL = "endpoints.kubernetes.io/managed-by"
_MANAGED_LABEL = "endpointslice.kubernetes.io/managed-by"


class _OnLoopback:
    """The rules of a kind, except that addresses may be loopback ones: here that is where Pods are."""

    def __init__(self, rules: Strategy) -> None:
        self._rules = rules
        self.default = rules.default
        self.prepare_create = rules.prepare_create
        self.prepare_update = rules.prepare_update
        self.fields = rules.fields

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return [cause for cause in self._rules.validate(obj, old) if "loopback" not in cause.message]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rules, name)


class EndpointReconciler:
    def __init__(self, server: EmbeddedServer, client: Any, pods: Cache[Unstructured]) -> None:
        self._registry = server.registry
        self._client = client
        self._pods = pods

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            service = await self._client.get(SERVICE, key)
        except NotFound:
            await self._drop(key)  # slices are owned by their Service and go with it; Endpoints are not
            return None
        selector = spec_of(service).get("selector")
        if not selector or deleting(service) or spec_of(service).get("type") == "ExternalName":
            return None
        pods = sorted((p for p in self._pods.list(key.namespace) if selected(p, selector)), key=lambda pod: pod.name)
        publish = bool(spec_of(service).get("publishNotReadyAddresses"))
        await self._hold(SLICE, render_slice(service, pods, publish))
        await self._hold(ENDPOINTS, render_endpoints(service, pods, publish))
        return None

    async def _hold(self, kind: Resource, wanted: Json) -> None:
        served, at = self._lenient(kind)
        meta = wanted["metadata"]
        record = self._registry.store.get(served.bucket, f"{meta['namespace']}/{meta['name']}")
        ctx = Context(SYSTEM, field_manager=_MANAGER)
        if record is None:
            await self._registry.create(ctx, served, at, meta["namespace"], wanted)
            return
        found: Json = orjson.loads(record.value)
        merged = {**found, **wanted, "metadata": {**found["metadata"], **meta}}
        if "subsets" in found and not wanted.get("subsets"):
            merged.pop("subsets", None)
        if merged != found:
            await self._registry.update(ctx, served, at, meta["namespace"], meta["name"], merged)

    async def _drop(self, key: Key) -> None:
        served, at = self._registry.find("", "v1", "endpoints")
        record = self._registry.store.get(served.bucket, str(key))
        if record is None or _MANAGER.encode() not in record.value:
            return
        labels = orjson.loads(record.value)["metadata"].get("labels") or {}
        if labels.get(_ENDPOINTS_LABEL) == _MANAGER:
            options = DeleteOptions(resource_version=str(record.revision))
            await self._registry.delete(Context(SYSTEM), served, at, key.namespace, key.name, options)

    def _lenient(self, kind: Resource) -> tuple[ServedKind, Version]:
        served, at = self._registry.find(kind.group, kind.version, kind.plural)
        return dataclasses.replace(served, strategy=_OnLoopback(served.strategy)), at


def selected(pod: Unstructured, selector: dict[str, str]) -> bool:
    labels = pod.metadata.get("labels") or {}
    return (
        bool(status_of(pod).get("podIP"))
        and selector.items() <= labels.items()
        and phase(pod) not in ("Succeeded", "Failed")
    )


def _target(pod: Unstructured) -> Json:
    return {"kind": POD.kind, "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


def usable(pod: Unstructured) -> bool:
    return ready_since(pod) is not None and not deleting(pod)


def render_slice(service: Unstructured, pods: Sequence[Unstructured], publish: bool) -> Json:
    endpoints = [
        {
            "addresses": [status_of(pod)["podIP"]],
            "conditions": {
                "ready": publish or usable(pod),
                "serving": ready_since(pod) is not None,
                "terminating": deleting(pod),
            },
            "nodeName": NODE,
            "targetRef": _target(pod),
            **({"hostname": spec_of(pod)["hostname"]} if _named(pod, service) else {}),
        }
        for pod in pods
    ]
    return {
        **SLICE.type_meta,
        "metadata": {
            "name": f"{service.name}-homeport",
            "namespace": service.namespace,
            "labels": {_SERVICE_LABEL: service.name, _MANAGED_LABEL: _MANAGER},
            "ownerReferences": [controller_ref(service, SERVICE)],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": _ports(service, pods),
    }


def render_endpoints(service: Unstructured, pods: Sequence[Unstructured], publish: bool) -> Json:
    def addresses(good: bool) -> list[Json]:
        chosen = [pod for pod in pods if (publish or usable(pod)) == good and not deleting(pod)]
        return [{"ip": status_of(pod)["podIP"], "nodeName": NODE, "targetRef": _target(pod)} for pod in chosen]

    subset = {"addresses": addresses(True), "notReadyAddresses": addresses(False), "ports": _ports(service, pods)}
    shown = {field: value for field, value in subset.items() if value}
    body: Json = {
        **ENDPOINTS.type_meta,
        "metadata": {
            "name": service.name,
            "namespace": service.namespace,
            "labels": {**(service.metadata.get("labels") or {}), _ENDPOINTS_LABEL: _MANAGER},
        },
    }
    if shown.keys() & {"addresses", "notReadyAddresses"}:
        body["subsets"] = [shown]
    return body


def _named(pod: Unstructured, service: Unstructured) -> bool:
    spec = spec_of(pod)
    return bool(spec.get("hostname")) and spec.get("subdomain") == service.name


def _ports(service: Unstructured, pods: Sequence[Unstructured]) -> list[Json]:
    result = []
    for port in spec_of(service).get("ports") or ():
        number = target_port(port, pods)
        if number is not None:
            shown = {"name": port.get("name", ""), "port": number, "protocol": port.get("protocol", "TCP")}
            result.append({field: value for field, value in shown.items() if value != "" or field != "name"})
    return result
