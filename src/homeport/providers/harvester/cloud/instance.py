"""Nodes and the VMs that they are, for the cloud controller manager."""

from __future__ import annotations

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, ObjectReference
from homeport.api.meta import Unstructured
from homeport.capi.cloud import Balancer, CloudInstance
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.client.protocol import Key
from homeport.infra.error import Denied, Missing
from homeport.providers.harvester.cloud.balancer import HarvesterBalancer
from homeport.providers.harvester.cloud.config import CloudConfig
from homeport.providers.harvester.infracluster.connection import Connector, HarvesterSession
from homeport.providers.harvester.infracluster.resource import MACHINE_NAMESPACE, NODE, REGION, VM, VMI, ZONE
from homeport.providers.harvester.machine.observation import (
    HARVESTER,
    KUBEVIRT,
    Machine,
    addresses_of,
    machine_of,
    power_of,
    rendered,
    vm_id,
)
from homeport.runtime.cache import labels_of

HARVESTER_TYPE = "harvester-vm"
KUBEVIRT_TYPE = "kubevirt-vm"


class HarvesterCloud:
    def __init__(self, config: CloudConfig, connector: Connector) -> None:
        self._config = config
        self._connector = connector
        # Connections are made for KubevirtClusters: here the configuration plays that part.
        self._infra = KubevirtCluster()
        self._infra.metadata.namespace = config.secret_namespace
        self._infra.spec.infra_cluster_secret_ref = ObjectReference(
            name=config.secret, namespace=config.secret_namespace
        )

    @property
    def balancer(self) -> Balancer | None:
        return HarvesterBalancer(self._config, self.session) if self._config.balances else None

    async def close(self) -> None:
        await self._connector.close()

    async def session(self) -> HarvesterSession:
        return await self._connector.connect(self._infra)

    async def instance(self, node: Unstructured) -> CloudInstance | None:
        known = provider_id(node)
        if known and not known.startswith((HARVESTER, KUBEVIRT)):
            raise Missing(f"Node {node.name} has the provider ID {known}: it is not a VM of Harvester or KubeVirt")
        session = await self.session()
        vm = await self._find(session, node.name, vm_id(known))
        if vm is None and not self._config.complete:
            raise Missing(f"Node {node.name}: no VM was found, and some VMs are in other infrastructure clusters")
        if vm is None:
            return None
        vmi = await session.find(VMI, Key(vm.namespace, vm.name))
        return await self._describe(session, machine_of(vm, vmi), known)

    async def _find(self, session: HarvesterSession, name: str, uid: str) -> Unstructured | None:
        """By its name, which is that of the Node; else by the UID in the provider ID. None is certain: every namespace
        was listed, and each list was answered."""
        for namespace in self._config.namespaces:
            found = await session.find(VM, Key(namespace, name))
            if found is not None and (found.uid == uid or self._is_ours(found)):
                return found
        for namespace in self._config.namespaces:
            for vm in await session.list_served(VM, namespace):
                if vm.uid == uid or (vm.name == name and self._is_ours(vm)):
                    return vm
        return None

    def _is_ours(self, vm: Unstructured) -> bool:
        labels, namespace = labels_of(vm), self._config.cluster_namespace
        same = not namespace or labels.get(MACHINE_NAMESPACE, namespace) == namespace
        return same and labels.get(CLUSTER_NAME_LABEL) == self._config.cluster

    async def _describe(self, session: HarvesterSession, machine: Machine, known: str) -> CloudInstance:
        vm = machine.vm
        prefix, kind = (HARVESTER, HARVESTER_TYPE) if session.harvester else (KUBEVIRT, KUBEVIRT_TYPE)
        size = str(((vm.get("spec") or {}).get("instancetype") or {}).get("name") or "")
        region, zone = await _place(session, machine)
        return CloudInstance(
            provider_id=known or f"{prefix}{vm.uid}",
            instance_type=size or kind,
            region=region,
            zone=zone,
            shutdown=power_of(machine) == "off",
            addresses=rendered(addresses_of(machine, virtual=self._config.virtual, first=0), vm.name),
        )


async def _place(session: HarvesterSession, machine: Machine) -> tuple[str, str]:
    """Region and zone of the host. An account of one namespace may not see hosts: Harvester notes both on the VMI."""
    if machine.vmi is None:
        return "", ""
    host = str((machine.vmi.get("status") or {}).get("nodeName") or "")
    try:
        found = await session.look_up(NODE, Key("", host)) if host else None
    except Denied:
        found = None
    labels = labels_of(found) if found is not None else machine.vmi.metadata.get("annotations") or {}
    return str(labels.get(REGION) or ""), str(labels.get(ZONE) or "")


def provider_id(node: Unstructured) -> str:
    return str((node.get("spec") or {}).get("providerID") or "")
