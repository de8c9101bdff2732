"""Services of the plane: their addresses, and connections to them that reach the Pods.

Every Service has a loopback address (in its annotation) at which its ports answer for programs of this machine.
Services of type LoadBalancer and NodePort answer where others can reach them, too.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Unstructured
from homeport.apiserver.webhook.endpoint import target_port
from homeport.builtin.workload.address import ADDRESS_ANNOTATION, ServiceOptions, ingress_addresses, loopback_of
from homeport.builtin.workload.endpoint import selected, usable
from homeport.builtin.workload.forward import Backend, Forward
from homeport.client.absence import find_object
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.runtime.cache import Cache
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import SERVICE, deleting, spec_of, status_of
from homeport.runtime.workload.replicaset import write_status

_WRITE = Write(field_manager="homeport-services")
_RETRY_SECONDS = 15.0
_DOMAIN = "cluster.local"
REACHABLE = "homeport.dev/Reachable"

Address = tuple[str, int]


class Unavailable(Exception):
    """A Service gets no address, or can't listen there. The text says why and what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class _Held:
    """What one Service has here."""

    uid: str
    forwards: dict[Address, Forward] = field(default_factory=dict)
    told: str = ""  # the last warning, so that it is not repeated


class ServiceReconciler:
    def __init__(
        self,
        client: Any,
        services: Cache[Unstructured],
        pods: Cache[Unstructured],
        recorder: Recorder,
        options: ServiceOptions,
        clock: Clock,
    ) -> None:
        self._client = client
        self._clock = clock
        self._services = services
        self._pods = pods
        self._recorder = recorder
        self._options = options
        self._held: dict[Key, _Held] = {}
        self._given: dict[str, tuple[Key, str]] = {}  # pool addresses that the cache may not show yet

    async def close(self) -> None:
        """Until cancelled; then nothing listens any more."""
        try:
            await asyncio.Event().wait()
        finally:
            for key in tuple(self._held):
                await self._drop(key)

    async def reconcile(self, key: Key) -> Wait | None:
        service = await find_object(self._client, SERVICE, key)
        known = self._held.get(key)
        if known is not None and (service is None or known.uid != service.uid):
            await self._drop(key)
        if service is None or not _served(service):
            await self._drop(key)
            self._free(key)
            return None
        held = self._held.setdefault(key, _Held(service.uid))
        try:
            await self._hold(key, service, held)
        except Unavailable as problem:
            if held.told != str(problem):
                held.told = str(problem)
                self._recorder.record(service, problem.reason, str(problem), warning=True)
            await self._report(key, service, problem)
            return Wait(problem.reason, str(problem), after=_RETRY_SECONDS)
        held.told = ""
        await self._report(key, service, None)
        return None

    async def _report(self, key: Key, service: Unstructured, problem: Unavailable | None) -> None:
        """A condition that is there only while something is wrong: users of the Service can say why they wait."""
        before: list[dict[str, Any]] = status_of(service).get("conditions") or []
        after = [each for each in before if each.get("type") != REACHABLE]
        if problem is not None:
            now = rfc3339(self._clock.now())
            generation = int(service.metadata.get("generation") or 0)
            after = condition.put(
                before, REACHABLE, "False", problem.reason, str(problem), now=now, generation=generation
            )
        if after != before:
            body = {"metadata": {"uid": service.uid}, "status": {"conditions": after or None}}
            await self._client.patch(SERVICE, key, MergePatch(body), _WRITE, subresource="status")

    async def _hold(self, key: Key, service: Unstructured, held: _Held) -> None:
        backends = self._backends(service)
        problem: Unavailable | None = None
        local = "" if _headless(service) else await self._local(key, service, held, backends)
        public: list[Address] = []
        try:
            public = await self._public(key, service, held, backends)
        except Unavailable as found:
            problem = found
        await self._close_others(held, {(local, port) for port in backends} | set(public))
        if self._options.site is not None:
            self._publish(service, local, public, backends)
        if problem is not None:
            raise problem

    # -- this machine ------------------------------------------------------------------------------------------

    async def _local(
        self, key: Key, service: Unstructured, held: _Held, backends: Mapping[int, Sequence[Backend]]
    ) -> str:
        noted = str((service.metadata.get("annotations") or {}).get(ADDRESS_ANNOTATION, ""))
        taken = {
            other
            for each in self._services.list("")
            if each.uid != service.uid
            and (other := (each.metadata.get("annotations") or {}).get(ADDRESS_ANNOTATION)) is not None
        }
        address = noted if noted.startswith("127.") and noted not in taken else loopback_of(service.uid, taken)
        while not await self._listen_local(held, address, backends):
            taken.add(address)  # another plane of this machine has it
            address = loopback_of(service.uid, taken)
        if address != noted:
            patch = MergePatch({"metadata": {"uid": service.uid, "annotations": {ADDRESS_ANNOTATION: address}}})
            await self._client.patch(SERVICE, key, patch, _WRITE)
        return address

    async def _listen_local(self, held: _Held, address: str, backends: Mapping[int, Sequence[Backend]]) -> bool:
        for port, found in backends.items():
            try:
                await self._listen(held, (address, port), found)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    return False
                # Ports below 1024 may need rights that we don't have: whoever needs that port is told by the dialling.
        return True

    async def _listen(self, held: _Held, at: Address, backends: Sequence[Backend]) -> None:
        forward = held.forwards.get(at)
        if forward is None:
            forward = Forward(*at)
            await forward.start()
            held.forwards[at] = forward
        forward.backends = tuple(backends)

    async def _close_others(self, held: _Held, wanted: set[Address]) -> None:
        for at in [each for each in held.forwards if each not in wanted]:
            await held.forwards.pop(at).close()

    # -- others ------------------------------------------------------------------------------------------------

    async def _public(
        self, key: Key, service: Unstructured, held: _Held, backends: Mapping[int, Sequence[Backend]]
    ) -> list[Address]:
        """Where others reach it; listens there, and writes the status of a load balancer."""
        spec, options = spec_of(service), self._options
        nodes = {int(p["nodePort"]): backends.get(int(p["port"]), ()) for p in _ports(service) if p.get("nodePort")}
        node_host = options.site.node if options.site is not None else options.host
        public = [(node_host, port) for port in nodes]
        if options.site is None:
            for port, found in nodes.items():
                await self._listen_public(held, (options.host, port), found)
        if spec.get("type") != "LoadBalancer" or spec.get("loadBalancerClass"):
            return public
        named = str(spec.get("loadBalancerIP") or "")
        if options.balancers is None and named not in options.ranges:
            if not nodes:
                raise Unavailable("NoNodePort", "spec.allocateLoadBalancerNodePorts is false: remove it")
            ports = [{"port": port, "protocol": "TCP"} for port in nodes]
            await self._write_ingress(service, [{"ip": options.shown_host, "ports": ports}])
            return public
        address = self._allocate(key, service)
        if options.site is None:
            for port, found in backends.items():
                await self._listen_public(held, (address, port), found)
        await self._write_ingress(service, [{"ip": address}])
        return [*public, *((address, port) for port in backends)]

    async def _listen_public(self, held: _Held, at: Address, backends: Sequence[Backend]) -> None:
        try:
            await self._listen(held, at, backends)
        except OSError as error:
            why = error.strerror or error
            raise Unavailable(
                "AddressNotAvailable",
                f"can't listen on {at[0]}:{at[1]}: {why}; free the port, or give the address to this machine",
            ) from error

    def _allocate(self, key: Key, service: Unstructured) -> str:
        others = [each for each in self._services.list("") if each.uid != service.uid]
        taken = {address: f"{each.namespace}/{each.name}" for each in others for address in ingress_addresses(each)}
        taken |= {address: str(holder) for address, (holder, _) in self._given.items() if holder != key}
        wanted = str(spec_of(service).get("loadBalancerIP") or "")
        if wanted:
            self._check_wanted(wanted, service, taken)
        address = wanted or self._from_pool(service, taken)
        self._given = {a: held for a, held in self._given.items() if held[1] != service.uid}
        self._given[address] = (key, service.uid)
        return address

    def _check_wanted(self, wanted: str, service: Unstructured, taken: Mapping[str, str]) -> None:
        """An address that it has already is kept: after a restart the ranges come a moment later."""
        if wanted in taken:
            raise Unavailable("AddressInUse", f"spec.loadBalancerIP {wanted} is used by Service {taken[wanted]}")
        pool, known = self._options.balancers, wanted in ingress_addresses(service)
        if not known and wanted not in self._options.ranges and (pool is None or wanted not in pool):
            text = f"the pool {pool.text}" if pool is not None else "a pool of this plane"
            raise Unavailable("AddressNotInPool", f"spec.loadBalancerIP {wanted} is not in {text}")

    def _from_pool(self, service: Unstructured, taken: Mapping[str, str]) -> str:
        pool = self._options.balancers
        assert pool is not None
        kept = next((a for a in ingress_addresses(service) if a in pool and a not in taken), "")
        ours = next((a for a, (_, uid) in self._given.items() if uid == service.uid and a in pool), "")
        address = kept or ours or pool.free(taken)
        if address is None:
            raise Unavailable("PoolExhausted", f"no address of the pool {pool.text} is free: extend it")
        return address

    def _free(self, key: Key) -> None:
        self._given = {address: held for address, held in self._given.items() if held[0] != key}

    async def _write_ingress(self, service: Unstructured, ingress: list[dict[str, Any]]) -> None:
        shown = (status_of(service).get("loadBalancer") or {}).get("ingress") or []
        if [{k: v for k, v in each.items() if k != "ipMode"} for each in shown] != ingress:
            status = {**status_of(service), "loadBalancer": {"ingress": ingress}}
            await write_status(self._client, SERVICE, service, status, _WRITE)

    def _publish(
        self, service: Unstructured, local: str, public: Sequence[Address], backends: Mapping[int, Sequence[Backend]]
    ) -> None:
        site = self._options.site
        assert site is not None
        nodes = {int(p["nodePort"]): int(p["port"]) for p in _ports(service) if p.get("nodePort")}
        cluster = str(spec_of(service).get("clusterIP") or "")
        found: dict[Address, Sequence[Backend]] = {}
        for address in (cluster, local):
            if address and address != "None":
                found |= {(address, port): each for port, each in backends.items()}
        for address, port in public:
            found[address, port] = backends.get(nodes[port] if address == site.node else port, ())
        own = list(dict.fromkeys(address for address, _ in found if address != site.node))
        names = dict.fromkeys(_names(service), own) if own else self._pod_names(service)
        site.publish(f"{service.namespace}/{service.name}", found, names)

    def _pod_names(self, service: Unstructured) -> dict[str, list[str]]:
        """A headless Service stands for its Pods, and names them."""
        found: dict[str, list[str]] = {}
        for pod in self._chosen(service):
            address = status_of(pod)["podIP"]
            for name in _names(service):
                found.setdefault(name, []).append(address)
                found[f"{spec_of(pod).get('hostname') or pod.name}.{name}"] = [address]
        return found

    # -- parts -------------------------------------------------------------------------------------------------

    def _backends(self, service: Unstructured) -> dict[int, list[Backend]]:
        """By port of the Service: the ready Pods."""
        pods = self._chosen(service)
        found: dict[int, list[Backend]] = {}
        for port in _ports(service):
            numbers = ((pod, target_port(port, [pod])) for pod in pods)
            found[int(port["port"])] = [(status_of(pod)["podIP"], n) for pod, n in numbers if n is not None]
        return found

    def _chosen(self, service: Unstructured) -> list[Unstructured]:
        spec = spec_of(service)
        publish = bool(spec.get("publishNotReadyAddresses"))
        pods = (pod for pod in self._pods.list(service.namespace) if selected(pod, spec["selector"]))
        return sorted((pod for pod in pods if publish or usable(pod)), key=lambda pod: pod.name)

    async def _drop(self, key: Key) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            await self._close_others(held, set())
            if self._options.site is not None:
                self._options.site.withdraw(str(key))


def _served(service: Unstructured) -> bool:
    spec = spec_of(service)
    return bool(spec.get("selector")) and not deleting(service) and spec.get("type") != "ExternalName"


def _headless(service: Unstructured) -> bool:
    return spec_of(service).get("clusterIP") == "None"


def _ports(service: Unstructured) -> list[dict[str, Any]]:
    return [port for port in spec_of(service).get("ports") or () if port.get("protocol", "TCP") == "TCP"]


def _names(service: Unstructured) -> Iterator[str]:
    """As cluster DNS would know it."""
    yield f"{service.name}.{service.namespace}"
    yield f"{service.name}.{service.namespace}.svc"
    yield f"{service.name}.{service.namespace}.svc.{_DOMAIN}"
