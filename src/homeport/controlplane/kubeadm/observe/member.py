"""The Machines of control planes, found by their cluster."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.capi import Capi
from homeport.capi.name import CLUSTER_NAME_LABEL, CONTROL_PLANE_LABEL
from homeport.capi.object.ownership import is_controlled_by
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.scope import ControlPlaneScope, Owned
from homeport.controlplane.reconciler import infrastructure_of
from homeport.runtime.cache import Cache
from homeport.runtime.controller import Controller

_CONTROL_PLANES = "control plane of"
_ALL = "machine of"


class Members:
    def __init__(
        self, capi: Capi, controller: Controller, machines: Cache[Machine], configs: Cache[KubeadmConfig]
    ) -> None:
        self._capi = capi
        self._controller = controller  # woken by the infrastructure machines that it reads
        self._machines = machines
        self._configs = configs
        machines.add_index(_ALL, lambda machine: [_cluster(machine)])
        machines.add_index(
            _CONTROL_PLANES,
            lambda machine: [_cluster(machine)] if CONTROL_PLANE_LABEL in machine.metadata.labels else [],
        )

    def control_planes(self, cluster: Key) -> Sequence[Machine]:
        """All of them, regardless of their owner."""
        return self._machines.by(_CONTROL_PLANES, str(cluster))

    def controlled(self, kcp: KubeadmControlPlane) -> list[Machine]:
        """Ours, whatever cluster they name."""
        return [each for each in self._machines.list(kcp.metadata.namespace) if is_controlled_by(each, kcp)]

    def workers(self, cluster: Key) -> list[Machine]:
        found = self._machines.by(_ALL, str(cluster))
        return [machine for machine in found if CONTROL_PLANE_LABEL not in machine.metadata.labels]

    async def owned(self, scope: ControlPlaneScope) -> list[Owned]:
        """Ours, with what was made for them; oldest first."""
        found = [each for each in self.control_planes(scope.cluster_key) if is_controlled_by(each, scope.kcp)]
        found.sort(key=lambda each: (each.metadata.creation_timestamp or "", each.metadata.name))
        return [await self._with_parts(scope, machine) for machine in found]

    async def _with_parts(self, scope: ControlPlaneScope, machine: Machine) -> Owned:
        config = None
        ref = machine.spec.bootstrap.config_ref
        if ref is not None and ref.kind == "KubeadmConfig":
            config = self._configs.get(Key(machine.metadata.namespace, ref.name))
        return Owned(machine, config, await infrastructure_of(self._capi, self._controller, scope.kcp, machine))


def _cluster(machine: Machine) -> str:
    name = machine.spec.cluster_name or machine.metadata.labels.get(CLUSTER_NAME_LABEL, "")
    return str(Key(machine.metadata.namespace, name))
