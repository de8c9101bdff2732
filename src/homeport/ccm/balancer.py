"""Services of type LoadBalancer where the infrastructure has load balancers."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Balancer
from homeport.ccm.failure import Failures
from homeport.ccm.service import SERVICE, balanced
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.error import ProviderError
from homeport.machinery.address import is_address
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

FINALIZER = "ccm.homeport.dev/load-balancer"  # also marks the Services whose load balancer this controller made
_WRITE = Write(field_manager="homeport-ccm")
_STEADY = Wait("Watching", "load balancers are checked periodically", after=300.0, quiet=True)


class BalancerReconciler:
    def __init__(self, manager: Manager, balancer: Balancer) -> None:
        self._client = manager.client
        self._recorder = manager.recorder
        self._services = manager.informers.get(SERVICE).cache
        self._balancer = balancer
        self._failures = Failures(manager.recorder)
        self._reported: dict[Key, str] = {}  # why a Service has no address: one event each

    async def reconcile(self, key: Key) -> Wait | None:
        service = self._services.get(key)
        if service is None:
            self._failures.forget(key)
            self._reported.pop(key, None)
            return None
        try:
            if service.metadata.get("deletionTimestamp") or not balanced(service):
                wait = await self._release(key, service)
            else:
                wait = await self._hold(key, service)
        except NotFound:
            return None  # the Service is gone
        except ProviderError as error:
            return self._failures.wait(key, service, error)
        self._failures.forget(key)
        return wait

    async def _hold(self, key: Key, service: Unstructured) -> Wait:
        if FINALIZER not in _finalizers(service):  # first: what is made after this is never forgotten
            service = await self._set_finalizers(key, service, [*_finalizers(service), FINALIZER])
        found = await self._balancer.ensure(service)
        if isinstance(found, Wait):
            if self._reported.get(key) != found.message:
                self._recorder.record(service, found.reason, found.message, warning=True)
            self._reported[key] = found.message
            return found
        self._reported.pop(key, None)
        ingress = [{"ip" if is_address(found) else "hostname": found}]
        held = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
        if [{name: each.get(name) for name in ingress[0]} for each in held] != ingress:
            await self._set_ingress(key, ingress)
            self._recorder.record(service, "EnsuredLoadBalancer", f"reachable at {found}")
        return _STEADY

    async def _release(self, key: Key, service: Unstructured) -> Wait | None:
        """Only what is ours: others may balance it in their way."""
        if FINALIZER not in _finalizers(service):
            return None
        wait = await self._balancer.remove(service)
        if wait is not None:
            return wait
        if not service.metadata.get("deletionTimestamp"):
            service = await self._set_ingress(key, None)
        await self._set_finalizers(key, service, [each for each in _finalizers(service) if each != FINALIZER])
        return None

    async def _set_ingress(self, key: Key, ingress: list[dict[str, str]] | None) -> Unstructured:
        body = {"status": {"loadBalancer": {"ingress": ingress}}}
        return await self._client.patch(SERVICE, key, MergePatch(body), _WRITE, subresource="status")

    async def _set_finalizers(self, key: Key, service: Unstructured, wanted: list[str]) -> Unstructured:
        # The list is replaced whole: a finalizer that was added a moment ago must not be lost.
        meta = {"finalizers": wanted, "uid": service.uid, "resourceVersion": service.resource_version}
        return await self._client.patch(SERVICE, key, MergePatch({"metadata": meta}), _WRITE)


def _finalizers(service: Unstructured) -> list[str]:
    return list(service.metadata.get("finalizers") or ())


def _concerned(old: Any, new: Any) -> bool:
    """Services of type LoadBalancer, or that still have a load balancer; not for writes of the status alone."""
    if old is not None and new is not None and _relevant_fields(old) == _relevant_fields(new):
        return False
    return any(each is not None and (balanced(each) or FINALIZER in _finalizers(each)) for each in (old, new))


def _relevant_fields(service: Unstructured) -> tuple[Any, ...]:
    meta = service.metadata
    status = (service.get("status") or {}).get("loadBalancer")
    return service.get("spec"), meta.get("annotations"), meta.get("finalizers"), meta.get("deletionTimestamp"), status


def install(manager: Manager, balancer: Balancer) -> None:
    manager.add(Controller("service", SERVICE, BalancerReconciler(manager, balancer), predicate=_concerned))
