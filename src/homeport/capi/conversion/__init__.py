"""Conversion of Cluster API's kinds between their versions: `register(hooks)`."""

from __future__ import annotations

from homeport.capi.conversion.cluster import CLUSTER
from homeport.capi.conversion.clusterclass import CLUSTER_CLASS
from homeport.capi.conversion.codec import Versions
from homeport.capi.conversion.converter import Converter
from homeport.capi.conversion.kubeadm import (
    KUBEADM_CONFIG,
    KUBEADM_CONFIG_TEMPLATE,
    KUBEADM_CONTROL_PLANE,
    KUBEADM_CONTROL_PLANE_TEMPLATE,
)
from homeport.capi.conversion.machine import (
    MACHINE,
    MACHINE_DEPLOYMENT,
    MACHINE_HEALTH_CHECK,
    MACHINE_POOL,
    MACHINE_SET,
)
from homeport.capi.conversion.part import status
from homeport.capi.conversion.rule import Rule
from homeport.capi.definition.kind import KINDS
from homeport.runtime.webhook.hook import Hooks

RULES: dict[str, list[Rule]] = {
    "Cluster": CLUSTER,
    "ClusterClass": CLUSTER_CLASS,
    "ClusterResourceSet": status({"ResourcesApplied": "ResourcesApplied"}),
    "ClusterResourceSetBinding": [],
    "ExtensionConfig": status(),
    "IPAddress": [],
    "IPAddressClaim": status({"Ready": "Ready"}),
    "KubeadmConfig": KUBEADM_CONFIG,
    "KubeadmConfigTemplate": KUBEADM_CONFIG_TEMPLATE,
    "KubeadmControlPlane": KUBEADM_CONTROL_PLANE,
    "KubeadmControlPlaneTemplate": KUBEADM_CONTROL_PLANE_TEMPLATE,
    "Machine": MACHINE,
    "MachineDeployment": MACHINE_DEPLOYMENT,
    "MachineDrainRule": [],
    "MachineHealthCheck": MACHINE_HEALTH_CHECK,
    "MachinePool": MACHINE_POOL,
    "MachineSet": MACHINE_SET,
}


def unknown_versions(group: str, kind: str) -> str | None:
    """Nobody knows in which version a kind is served: references of older versions then say v1beta1."""
    return None


def converters(versions: Versions = unknown_versions) -> dict[tuple[str, str], Converter]:
    """(group, kind) > converter."""
    return {
        (kind.versions[-1].__resource__.group, kind.versions[-1].__resource__.kind): Converter(
            kind.versions, RULES[kind.versions[-1].__resource__.kind], versions
        )
        for kind in KINDS
    }


def register(hooks: Hooks, versions: Versions = unknown_versions) -> None:
    """`versions` says in which version objects of a group and kind are referred to by v1beta1's references."""
    made = converters(versions)
    for (group, kind), converter in made.items():
        hooks.convert(group, kind, converter)
    for known in KINDS:
        newest = known.versions[-1]
        hooks.check_converted(newest, made[newest.__resource__.group, newest.__resource__.kind])
