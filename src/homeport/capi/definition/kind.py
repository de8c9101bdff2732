"""CustomResourceDefinitions of Cluster API's kinds, made from the types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.addons import v1beta1 as addons_v1beta1
from homeport.api.addons import v1beta2 as addons
from homeport.api.bootstrap import v1beta1 as bootstrap_v1beta1
from homeport.api.bootstrap import v1beta2 as bootstrap
from homeport.api.cluster import v1beta1 as cluster_v1beta1
from homeport.api.cluster import v1beta2 as cluster
from homeport.api.clusterctl import v1alpha3 as clusterctl
from homeport.api.controlplane import v1beta1 as controlplane_v1beta1
from homeport.api.controlplane import v1beta2 as controlplane
from homeport.api.ipam import v1alpha1 as ipam_v1alpha1
from homeport.api.ipam import v1beta1 as ipam_v1beta1
from homeport.api.ipam import v1beta2 as ipam
from homeport.api.meta import Object
from homeport.api.runtime import v1alpha1 as runtime_v1alpha1
from homeport.api.runtime import v1beta2 as runtime
from homeport.capi.definition import inventory
from homeport.capi.definition.column import COLUMNS, Column
from homeport.machinery.crd.generate import generate

Columns = Mapping[tuple[str, str], tuple[Column, ...]]

CATEGORY = "cluster-api"
# Which of our versions keeps which contract: others find the version to read a kind in by these labels.
CONTRACTS = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}

_SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
SELECTING = {**_SCALE, "labelSelectorPath": ".status.selector"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind that Homeport defines: its versions, oldest first; the last one is stored."""

    versions: tuple[type[Object], ...]
    short: tuple[str, ...] = ()
    scale: dict[str, str] | None = None
    status: tuple[str, ...] | None = None  # versions with a status of its own; None: each that has a status
    fresh: tuple[str, ...] = ()  # older versions that nobody is warned of


KINDS = (
    Kind(versions=(cluster_v1beta1.Cluster, cluster.Cluster), short=("cl",)),
    Kind(versions=(cluster_v1beta1.ClusterClass, cluster.ClusterClass), short=("cc",)),
    Kind(versions=(cluster_v1beta1.Machine, cluster.Machine), short=("ma",)),
    Kind(versions=(cluster_v1beta1.MachineSet, cluster.MachineSet), short=("ms",), scale=SELECTING),
    Kind(versions=(cluster_v1beta1.MachineDeployment, cluster.MachineDeployment), short=("md",), scale=SELECTING),
    Kind(versions=(cluster_v1beta1.MachinePool, cluster.MachinePool), short=("mp",), scale=_SCALE),
    Kind(versions=(cluster_v1beta1.MachineHealthCheck, cluster.MachineHealthCheck), short=("mhc", "mhcs")),
    Kind(versions=(cluster_v1beta1.MachineDrainRule, cluster.MachineDrainRule)),
    Kind(versions=(addons_v1beta1.ClusterResourceSet, addons.ClusterResourceSet)),
    Kind(
        versions=(addons_v1beta1.ClusterResourceSetBinding, addons.ClusterResourceSetBinding),
        status=("v1beta1",),
    ),
    Kind(versions=(bootstrap_v1beta1.KubeadmConfig, bootstrap.KubeadmConfig)),
    Kind(versions=(bootstrap_v1beta1.KubeadmConfigTemplate, bootstrap.KubeadmConfigTemplate)),
    Kind(
        versions=(controlplane_v1beta1.KubeadmControlPlane, controlplane.KubeadmControlPlane),
        short=("kcp",),
        scale=SELECTING,
    ),
    Kind(versions=(controlplane_v1beta1.KubeadmControlPlaneTemplate, controlplane.KubeadmControlPlaneTemplate)),
    Kind(versions=(ipam_v1alpha1.IPAddress, ipam_v1beta1.IPAddress, ipam.IPAddress), fresh=("v1alpha1",)),
    Kind(
        versions=(ipam_v1alpha1.IPAddressClaim, ipam_v1beta1.IPAddressClaim, ipam.IPAddressClaim),
        fresh=("v1alpha1",),
    ),
    Kind(versions=(runtime_v1alpha1.ExtensionConfig, runtime.ExtensionConfig), short=("ext",)),
)


_PROVIDER = Kind(versions=(clusterctl.Provider,))


def definitions() -> list[dict[str, Any]]:
    """All of them. Conversion is added by the installer: in process, or by webhook."""
    return [
        *definitions_of(inventory.CORE),
        *definitions_of(inventory.BOOTSTRAP),
        *definitions_of(inventory.CONTROL_PLANE),
    ]


def definitions_of(provider: inventory.UpstreamProvider) -> list[dict[str, Any]]:
    """Of the kinds of one provider. The labels tell clusterctl which objects belong to a cluster."""
    labels = {**CONTRACTS, **inventory.labels(provider)}
    found = [render_definition(kind, labels=labels) for kind in KINDS if _provider(kind) is provider]
    if provider is inventory.CORE:
        found.append(render_definition(_PROVIDER, labels=inventory.OWN_LABELS))
    return found


def _provider(kind: Kind) -> inventory.UpstreamProvider:
    return inventory.BY_GROUP.get(kind.versions[-1].__resource__.group, inventory.CORE)


def render_definition(kind: Kind, columns: Columns = COLUMNS, labels: Mapping[str, str] = CONTRACTS) -> dict[str, Any]:
    """`columns` and `labels` are for kinds of providers, which have their own."""
    resource = kind.versions[-1].__resource__
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "categories": [CATEGORY],
    }
    if kind.short:
        names["shortNames"] = list(kind.short)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.qualified, "labels": dict(labels)},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(kind, cls, columns) for cls in kind.versions],
        },
    }


def _version(kind: Kind, cls: type[Object], columns: Columns) -> dict[str, Any]:
    at, stored = cls.__resource__, cls is kind.versions[-1]
    version: dict[str, Any] = {"name": at.version, "served": True, "storage": stored}
    if not stored and at.version not in kind.fresh:
        version["deprecated"] = True
    version["additionalPrinterColumns"] = [column.render() for column in columns[at.kind, at.version]]
    version["schema"] = {"openAPIV3Schema": generate(cls)}
    if subresources := _subresources(kind, cls):
        version["subresources"] = subresources
    return version


def _subresources(kind: Kind, cls: type[Object]) -> dict[str, Any]:
    if kind.status is None:
        has_status = "status" in cls.__struct_fields__
    else:
        has_status = cls.__resource__.version in kind.status
    found: dict[str, Any] = {"status": {}} if has_status else {}
    if kind.scale:
        found["scale"] = dict(kind.scale)
    return found
