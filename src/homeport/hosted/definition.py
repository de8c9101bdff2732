"""CustomResourceDefinitions of the kinds of Steward and Kamaji."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Object
from homeport.capi.definition import inventory
from homeport.capi.definition.column import AGE, CLUSTER_LABEL, VERSION, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.hosted.flavour import KAMAJI, STEWARD, Flavour

LISTED = {
    STEWARD.name: inventory.UpstreamProvider("ControlPlaneProvider", "steward", "v0.3.0"),
    KAMAJI.name: inventory.UpstreamProvider("ControlPlaneProvider", "kamaji", "v0.16.0"),
}
# One version keeps both contracts: what the newer one adds stands beside what the older one reads.
_CONTRACTS = {"cluster.x-k8s.io/v1beta1": "v1alpha1", "cluster.x-k8s.io/v1beta2": "v1alpha1"}
_SHORT = {STEWARD.name: ("stcp",), KAMAJI.name: ("ktcp",)}
_TEMPLATE_SHORT = {STEWARD.name: ("stcpt",), KAMAJI.name: ("ktcpt",)}
_TENANT_SCALE = {
    "specReplicasPath": ".spec.controlPlane.deployment.replicas",
    "statusReplicasPath": ".status.kubernetesResources.deployment.replicas",
    "labelSelectorPath": ".status.kubernetesResources.deployment.selector",
}
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_TENANT = (
    Column("Version", ".spec.kubernetes.version"),
    Column("Installed Version", ".status.kubernetesResources.version.version"),
    Column("Status", ".status.kubernetesResources.version.status"),
    Column("Control-Plane endpoint", ".status.controlPlaneEndpoint"),
    Column("Kubeconfig", ".status.kubeconfig.admin.secretName"),
    Column("Datastore", ".status.storage.dataStoreName"),
    AGE,
)
_CONTROL_PLANE = (
    VERSION,
    Column("Initialized", ".status.initialized", "boolean"),
    Column("Ready", ".status.ready", "boolean"),
    AGE,
    CLUSTER_LABEL._replace(wide=True),
)


def definitions(flavour: Flavour) -> list[dict[str, Any]]:
    listed = inventory.labels(LISTED[flavour.name])
    # Only one of the two can have a short name, or `kubectl get tcp` would not know which one is meant.
    tenant, generator = (("tcp",), ("kc",)) if flavour is STEWARD else ((), ())
    return [
        _render(flavour, Kind(versions=(flavour.tenant,), short=tenant, scale=_TENANT_SCALE), _TENANT, listed),
        _render(flavour, Kind(versions=(flavour.datastore,)), (Column("Driver", ".spec.driver"), AGE), listed),
        _render(flavour, Kind(versions=(flavour.generator,), short=generator), (AGE,), listed),
        _render(
            flavour,
            Kind(versions=(flavour.control_plane,), short=_SHORT[flavour.name], scale=_SCALE),
            _CONTROL_PLANE,
            {**_CONTRACTS, **listed},
        ),
        _render(
            flavour,
            Kind(versions=(flavour.template,), short=_TEMPLATE_SHORT[flavour.name]),
            (AGE,),
            {**_CONTRACTS, **listed},
        ),
    ]


def _render(flavour: Flavour, kind: Kind, columns: tuple[Column, ...], labels: dict[str, str]) -> dict[str, Any]:
    at: type[Object] = kind.versions[-1]
    resource = at.__resource__
    found = render_definition(kind, {(resource.kind, resource.version): columns}, labels)
    of_capi = resource.group == flavour.control_plane.__resource__.group
    found["spec"]["names"]["categories"] = ["cluster-api", flavour.name] if of_capi else [flavour.name]
    return found
