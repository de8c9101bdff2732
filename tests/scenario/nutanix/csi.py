"""Nutanix' CSI driver as its chart installs it, as far as the stand-in looks at it; and what a user does with it."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.event import EVENT
from homeport.sim.machine.workload.kind import (
    CLAIM,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    SECRET,
    STORAGE_CLASS,
    VOLUME,
)
from homeport.sim.machine.workload.standin.csi.driver import CSI_DRIVER
from homeport.sim.prism.entity import VolumeGroup
from scenario.nutanix.site import Site

DRIVER = "csi.nutanix.com"
SPACE = "ntnx-system"
CLASS = "nutanix-volume"


class Csi:
    def __init__(self, site: Site) -> None:
        self.site = site
        (self.cluster,) = site.fleet.clusters()
        self.client = self.cluster.client()

    async def install(self, *, key: str = "prism-central:9440:admin:password", **spec: Any) -> None:
        await self.cluster.put([({"metadata": {"name": SPACE}}, NAMESPACE)])
        await self.cluster.put(
            [
                ({"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}}, CSI_DRIVER),
                ({"metadata": {"name": "ntnx-pc-secret", "namespace": SPACE}, "stringData": {"key": key}}, SECRET),
                (storage_class(CLASS, **spec), STORAGE_CLASS),
                (controller(), DEPLOYMENT),
                (node(), DAEMON_SET),
            ]
        )
        await asyncio.sleep(10)

    async def claim(self, name: str = "data", size: str = "1Gi", storage: str = CLASS) -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage,
            "resources": {"requests": {"storage": size}},
        }
        await self.client.create({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, kind=CLAIM)
        await asyncio.sleep(10)

    async def use(self, pod: str = "database", *claims: str, node: str = "") -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims or ("data",)]
        spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        if node:
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        await self.client.create({"metadata": {"name": pod, "namespace": "default"}, "spec": spec}, kind=POD)
        await asyncio.sleep(10)

    async def phase(self, name: str = "data") -> str:
        return str((await self.client.get(CLAIM, Key("default", name)))["status"]["phase"])

    async def pod(self, name: str = "database") -> Any:
        return await self.client.get(POD, Key("default", name))

    async def patch_claim(self, patch: dict[str, Any], name: str = "data") -> None:
        await self.client.patch(CLAIM, Key("default", name), MergePatch(patch))
        await asyncio.sleep(10)

    async def delete(self, kind: Any, name: str, namespace: str = "default") -> None:
        await self.client.delete(kind, Key(namespace, name))
        await asyncio.sleep(20)

    async def exists(self, kind: Any, name: str) -> bool:
        try:
            await self.client.get(kind, Key("default" if kind.namespaced else "", name))
        except NotFound:
            return False
        return True

    async def volume(self) -> Any:
        (found,) = (await self.client.list(VOLUME)).items
        return found

    async def events(self, name: str = "data") -> dict[str, str]:
        found = (await self.client.list(EVENT, Query())).items
        return {each["reason"]: each["message"] for each in found if each["involvedObject"]["name"] == name}

    def groups(self) -> list[VolumeGroup]:
        return list(self.site.prism.world.volume_groups)

    def attached(self) -> list[str]:
        """Names of the VMs that have the only volume group."""
        (group,) = self.groups()
        names = {vm.ext_id: vm.name for vm in self.site.vms()}
        return [names[vm] for vm in group.attached]


def storage_class(name: str, **spec: Any) -> dict[str, Any]:
    prefix = "csi.storage.k8s.io"
    parameters = {
        f"{prefix}/provisioner-secret-name": "ntnx-pc-secret",
        f"{prefix}/provisioner-secret-namespace": SPACE,
        f"{prefix}/fstype": "xfs",
        "storageType": "NutanixVolumes",
        "storageContainer": "SelfServiceContainer",
        **spec.pop("parameters", {}),
    }
    body = {"metadata": {"name": name}, "provisioner": DRIVER, "parameters": parameters, "allowVolumeExpansion": True}
    return {**body, **spec}


def node() -> dict[str, Any]:
    """It mounts volumes, and makes none."""
    labels = {"app": "nutanix-csi-node"}
    container = {"name": "nutanix-csi-node", "image": "registry.example.com/ntnx-csi:3.3"}
    pod = {"containers": [container], "hostNetwork": True, "tolerations": [{"operator": "Exists"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return {"metadata": {"name": "nutanix-csi-node", "namespace": SPACE}, "spec": spec}


def controller() -> dict[str, Any]:
    labels = {"app": "nutanix-csi-controller"}
    containers = [
        {"name": "csi-provisioner", "image": "registry.example.com/sig-storage/csi-provisioner:v5"},
        {"name": "nutanix-csi-plugin", "image": "registry.example.com/ntnx-csi:3.3"},
    ]
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": containers, "tolerations": [{"operator": "Exists"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": "nutanix-csi-controller", "namespace": SPACE}, "spec": spec}
