"""A plane with one provider's component and nothing else: the test plays Cluster API's core and the user.

async with provider_plane(open_vendor) as g:
    await g.cluster()
    await g.machine("a")
    await g.ready("a")
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from conformance.provider.vendor import Found, Open, Vendor
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.builtin.install import install as install_builtin
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.component import Setup
from homeport.capi.definition import kind as definition
from homeport.capi.environment import Environment
from homeport.capi.object.ownership import owner_reference
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.infra.machine.driver import CREATING
from homeport.ipam.definition import definitions as pool_definitions
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager, Mode
from homeport.runtime.testing import Plane, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks

SECRET = Resource("", "v1", "Secret", "secrets")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
NAMESPACE = "default"
NAME = "one"
_USER_DATA = "#cloud-config\nruncmd: [echo hello]\n"


def key(name: str) -> Key:
    return Key(NAMESPACE, name)


class ProviderPlane:
    def __init__(self, p: Plane, vendor: Vendor) -> None:
        self.plane = p
        self.client = p.client
        self.vendor = vendor
        self.environment = Environment(p.client, vendor.dial, p.server)
        self.capi: Capi

    # -- controllers -------------------------------------------------------------------------------------------

    def manager(self, mode: Mode | None = None) -> Manager:
        made = Manager(self.plane.server.client(), mode=mode, clock=self.plane.clock)
        setup = Setup(made, self.environment, (self.vendor.component,))
        self.capi = setup.capi
        self.vendor.component.install(setup)
        return made

    async def answers(self, name: str = NAME) -> None:
        """The workload cluster can be asked from now on: the plane's own server plays it, and has its Nodes."""
        await self.capi.remotes.attach(key(name), self.plane.server.client())

    async def start(self) -> None:
        self.plane.manager = self.manager()
        install_builtin(self.plane.server, self.plane.manager)
        await self.plane.start()

    async def stop(self) -> None:
        await self.plane.stop()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    # -- what core does ----------------------------------------------------------------------------------------

    async def cluster(self, name: str = NAME, *, provisioned: bool = True, secret: bool = True) -> Any:
        """A Cluster and its infrastructure, which is provisioned when this returns."""
        if secret:
            await self.plane.have(self.vendor.credentials())
        infra = self.vendor.infra_cluster(name)
        ref = {"apiGroup": infra["apiVersion"].partition("/")[0], "kind": infra["kind"], "name": name}
        body = {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "infrastructureRef": ref,
                "controlPlaneEndpoint": infra["spec"]["controlPlaneEndpoint"],
                # Some control plane that is not ours: none of its machines is made from templates.
                "controlPlaneRef": {"apiGroup": "controlplane.example.com", "kind": "Plane", "name": name},
            },
        }
        await self.plane.have(body)
        owner = owner_reference(await self.client.get(Cluster, key(name)))
        infra["metadata"] |= {
            "labels": {"cluster.x-k8s.io/cluster-name": name},
            "ownerReferences": [dict(owner)],
        }
        await self.plane.have(infra)
        return await self.provisioned(name) if provisioned else None

    async def provisioned(self, name: str = NAME, timeout: float = 900.0) -> Any:
        infra = await self.plane.until(
            self.vendor.cluster_kind, key(name), lambda c: c.status.initialization.provisioned, timeout
        )
        status = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}
        await self.client.patch(Cluster, key(name), MergePatch({"status": status}), subresource="status")
        return infra

    async def machine(
        self,
        name: str,
        cluster: str = NAME,
        *,
        infra_name: str = "",
        finalizers: Sequence[str] = (),
        pools: Sequence[Mapping[str, str]] = (),
        user_data: str = _USER_DATA,
    ) -> None:
        """`infra_name`: of its infrastructure, if it differs. `finalizers`: as if somebody had begun with it already.
        `pools`: where its addresses come from."""
        data = {"value": user_data, "format": "cloud-config"}
        infra = self.vendor.infra_machine(infra_name or name)
        if pools:
            infra["spec"]["addressesFromPools"] = [dict(each) for each in pools]
        ref = {
            "apiGroup": infra["apiVersion"].partition("/")[0],
            "kind": infra["kind"],
            "name": infra["metadata"]["name"],
        }
        labels = {"cluster.x-k8s.io/cluster-name": cluster}
        bootstrap = {"dataSecretName": f"{name}-bootstrap"}
        spec = {"clusterName": cluster, "bootstrap": bootstrap, "infrastructureRef": ref, "version": "v1.30.0"}
        meta = {"name": f"{name}-bootstrap", "namespace": NAMESPACE}
        await self.plane.have(
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data},
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "Machine",
                "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
                "spec": spec,
            },
        )
        owner = owner_reference(await self.client.get(Machine, key(name)), controller=True)
        infra["metadata"] |= {"labels": labels, "ownerReferences": [dict(owner)], "finalizers": list(finalizers)}
        await self.plane.have(infra)

    async def ready(self, *names: str, timeout: float = 1800.0) -> list[Any]:
        return [
            await self.plane.until(
                self.vendor.machine_kind, key(name), lambda m: m.status.initialization.provisioned, timeout
            )
            for name in names
        ]

    async def delete(self, name: str) -> None:
        """As core does it: the infrastructure first; the Machine stays until that is gone."""
        with contextlib.suppress(NotFound):
            await self.client.delete(self.vendor.machine_kind, key(name))

    async def deleted(self, *names: str, timeout: float = 1800.0) -> None:
        for name in names:
            await self.plane.gone(self.vendor.machine_kind, key(name), timeout)

    async def delete_cluster(self, name: str = NAME) -> None:
        await self.client.delete(self.vendor.cluster_kind, key(name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def infra_machine(self, name: str) -> Any:
        return await self.client.get(self.vendor.machine_kind, key(name))

    async def infra_cluster(self, name: str = NAME) -> Any:
        return await self.client.get(self.vendor.cluster_kind, key(name))

    async def says(self, kind: Any, name: str, *words: str, type_: str = "Ready", timeout: float = 900.0) -> str:
        """The condition's reason and message, once it is False and has all of these words."""

        def fits(obj: Any) -> bool:
            found = condition(obj, type_)
            return found.get("status") == "False" and all(word in _text(found) for word in words)

        obj = await self.plane.until(kind, key(name), fits, timeout, what=f"{type_} False with {words}")
        return _text(condition(obj, type_))

    async def machine_says(self, name: str, *words: str, type_: str = "Ready", timeout: float = 900.0) -> str:
        return await self.says(self.vendor.machine_kind, name, *words, type_=type_, timeout=timeout)

    async def being_created(self, name: str) -> None:
        """Returns when the vendor was asked to create the machine and has not finished."""
        await self.machine_says(name, CREATING)

    async def orphans_say(self, *words: str) -> str:
        return await self.cluster_says(*words, type_=self.vendor.conditions.orphans, timeout=1200)

    async def cluster_says(self, *words: str, name: str = NAME, type_: str = "Ready", timeout: float = 900.0) -> str:
        return await self.says(self.vendor.cluster_kind, name, *words, type_=type_, timeout=timeout)

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(EVENT, Query(namespace=NAMESPACE))).items
        return [str(each.get("note")) for each in found if each.get("reason") == reason]

    def found(self, name: str) -> Found:
        (only,) = [each for each in self.vendor.machines() if each.name == name]
        return only

    async def pass_time(self, seconds: float) -> None:
        """Virtual seconds go by."""
        import asyncio

        await asyncio.sleep(seconds)


def condition(obj: Any, type_: str) -> dict[str, Any]:
    return next((dict(each) for each in obj.status.conditions if each["type"] == type_), {})


def _text(found: dict[str, Any]) -> str:
    return f"{found.get('reason', '')}: {found.get('message', '')}"


@asynccontextmanager
async def provider_plane(open_vendor: Open, *, start: bool = True, echo: bool = False) -> AsyncIterator[ProviderPlane]:
    async with plane(echo=echo) as p, open_vendor(p.clock) as vendor:
        hooks = Hooks()
        conversion.register(hooks)
        made = ProviderPlane(p, vendor)
        vendor.component.register(hooks, made.environment)
        install_hooks(hooks, p.server)
        await establish(p.client, *definition.definitions(), *pool_definitions(), *vendor.component.definitions())
        if start:
            await made.start()
        try:
            yield made
        finally:
            await p.stop()
