"""What there is of a Cluster's topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachineHealthCheck
from homeport.api.meta import Unstructured
from homeport.capi.version import is_at


@dataclass(frozen=True, slots=True)
class CurrentDeployment:
    object: MachineDeployment
    bootstrap: Unstructured | None = None
    infrastructure: Unstructured | None = None
    check: MachineHealthCheck | None = None
    machines: Sequence[Machine] = ()

    @property
    def going(self) -> bool:
        return bool(self.object.metadata.deletion_timestamp)

    @property
    def upgrading(self) -> bool:
        """Some of its Machines, or the kubelets on them, have another version."""
        wanted = self.object.spec.template.spec.version
        if not wanted:
            return False
        behind = any(m.spec.version and m.spec.version != wanted for m in self.machines)
        kubelets = {m.status.node_info.kubelet_version for m in self.machines} - {""}
        return behind or not all(is_at(each, wanted) for each in kubelets)


@dataclass(frozen=True, slots=True)
class Current:
    infrastructure: Unstructured | None = None
    control_plane: Unstructured | None = None
    machines: Unstructured | None = None  # the template of the control plane's machines
    check: MachineHealthCheck | None = None  # of the control plane
    deployments: Mapping[str, CurrentDeployment] = field(default_factory=dict)  # by their name in the topology
