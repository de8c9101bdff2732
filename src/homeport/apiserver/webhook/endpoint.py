"""Finds the address behind a webhook's Service in the server's own store. There is no cluster DNS to ask.

Service > its EndpointSlices, else its Endpoints, else the Pods that it selects > a ready address
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from homeport.apiserver.webhook.call import CallFailed
from homeport.machinery import condition
from homeport.store import Store

SERVICES = "services"
SLICES = "endpointslices.discovery.k8s.io"
ENDPOINTS = "endpoints"
PODS = "pods"
_SERVICE_LABEL = "kubernetes.io/service-name"

_Object = Mapping[str, Any]


class Address(NamedTuple):
    host: str
    port: int


class _Candidate(NamedTuple):
    address: Address
    ready: bool


class ServiceEndpoints:
    """Resolves Services to addresses. The ready ones take turns."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = itertools.count()

    def resolve(self, namespace: str, name: str, port: int) -> Address:
        """Raises CallFailed if the Service, its port or a ready endpoint is missing."""
        service = self._get(SERVICES, namespace, name)
        if service is None:
            raise CallFailed(f'service "{name}" not found')
        spec = service.get("spec") or {}
        if spec.get("type") == "ExternalName":
            return Address(str(spec.get("externalName")), port)
        chosen = next((each for each in spec.get("ports") or () if each.get("port") == port), None)
        if chosen is None:
            raise CallFailed(f'no service port {port} found for service "{name}"')
        found = list(self._candidates(namespace, name, spec, chosen))
        ready = [each.address for each in found if each.ready]
        if not ready:
            seen = f"{len(found)} endpoint(s), none of them ready" if found else "it has no endpoints"
            raise CallFailed(f'no endpoints available for service "{name}" in namespace "{namespace}": {seen}')
        return ready[next(self._turn) % len(ready)]

    def _candidates(self, namespace: str, name: str, spec: _Object, port: _Object) -> Iterator[_Candidate]:
        slices = [each for each in self._all(SLICES, namespace) if _labels(each).get(_SERVICE_LABEL) == name]
        if slices:
            return _in_slices(slices, port)
        endpoints = self._get(ENDPOINTS, namespace, name)
        if endpoints is not None:
            return _in_subsets(endpoints.get("subsets") or (), port)
        # Simulated clusters run no endpoint controller.
        selector = spec.get("selector") or {}
        selected = (pod for pod in self._all(PODS, namespace) if selector and selector.items() <= _labels(pod).items())
        return _in_pods(selected, port)

    def _get(self, bucket: str, namespace: str, name: str) -> _Object | None:
        record = self._store.get(bucket, f"{namespace}/{name}")
        return None if record is None else orjson.loads(record.value)

    def _all(self, bucket: str, namespace: str) -> Iterator[_Object]:
        return (orjson.loads(record.value) for record in self._store.range(bucket, prefix=f"{namespace}/"))


def _labels(obj: _Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _in_slices(slices: Iterable[_Object], port: _Object) -> Iterator[_Candidate]:
    for each in slices:
        number = _published(each.get("ports") or (), port)
        for endpoint in each.get("endpoints") or () if number else ():
            # An unset `ready` means unknown, which Kubernetes reads as ready.
            ready = (endpoint.get("conditions") or {}).get("ready") is not False
            yield _Candidate(Address(endpoint["addresses"][0], int(number or 0)), ready)


def _in_subsets(subsets: Iterable[_Object], port: _Object) -> Iterator[_Candidate]:
    for each in subsets:
        number = _published(each.get("ports") or (), port)
        for field in ("addresses", "notReadyAddresses") if number else ():
            for address in each.get(field) or ():
                yield _Candidate(Address(address["ip"], int(number or 0)), field == "addresses")


def _published(ports: Iterable[_Object], wanted: _Object) -> int | None:
    """The endpoint's port of the same name as the Service's port."""
    name = wanted.get("name") or ""
    return next((each["port"] for each in ports if (each.get("name") or "") == name and each.get("port")), None)


def _in_pods(pods: Iterable[_Object], port: _Object) -> Iterator[_Candidate]:
    for pod in pods:
        status = pod.get("status") or {}
        number = target_port(port, [pod])
        if number is None or not status.get("podIP") or status.get("phase") in ("Succeeded", "Failed"):
            continue
        ready = condition.is_true(status.get("conditions"), "Ready") and "deletionTimestamp" not in pod["metadata"]
        yield _Candidate(Address(status["podIP"], number), ready)


def target_port(port: _Object, pods: Iterable[_Object]) -> int | None:
    """The number behind a Service's port, which may name a port of a container."""
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, int):
        return target
    for pod in pods:
        for container in (pod.get("spec") or {}).get("containers") or ():
            for each in container.get("ports") or ():
                if each.get("name") == target:
                    return int(each["containerPort"])
    return None
