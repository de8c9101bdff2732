"""A ClusterClass of the generic provider, Clusters made from it, and the moment at which they are as they should be."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from capikit import generic
from capikit.harness import NAMESPACE, Harness
from capikit.manifest import _PROVIDER_ID, CLUSTER_API, _object
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.protocol import Key, Query
from homeport.machinery import condition

CLASS = "plain"
DEPLOYMENT_LABEL = "topology.cluster.x-k8s.io/deployment-name"
CLUSTER_LABEL = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_TEMPLATE = Resource(
    "controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates"
)
CONFIG_TEMPLATE = Resource("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates")

VARIABLES: list[dict[str, Any]] = [
    {"name": "image", "required": False, "schema": {"openAPIV3Schema": {"type": "string", "default": "ubuntu"}}},
    {
        "name": "machine",
        "required": False,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "default": {},
                "properties": {
                    "cores": {"type": "integer", "minimum": 1, "maximum": 64, "default": 2},
                    "memory": {"type": "string", "pattern": "^[0-9]+Gi$", "default": "4Gi"},
                },
            }
        },
    },
    {"name": "audit", "required": False, "schema": {"openAPIV3Schema": {"type": "boolean", "default": False}}},
]


def _machines(class_name: str | None) -> dict[str, Any]:
    """Selects the machine template of the control plane, or of a class of workers."""
    where = {"controlPlane": True} if class_name is None else {"machineDeploymentClass": {"names": [class_name]}}
    return {"apiVersion": f"{generic.GROUP}/v1", "kind": "GenericMachineTemplate", "matchResources": where}


PATCHES: list[dict[str, Any]] = [
    {
        "name": "image",
        "definitions": [
            {
                "selector": _machines(class_name),
                "jsonPatches": [
                    {"op": "add", "path": "/spec/template/spec/image", "valueFrom": {"variable": "image"}},
                ],
            }
            for class_name in (None, "worker")
        ],
    },
    {
        "name": "size",
        "definitions": [
            {
                "selector": _machines("worker"),
                "jsonPatches": [
                    {"op": "add", "path": "/spec/template/spec/cores", "valueFrom": {"variable": "machine.cores"}},
                    {
                        "op": "add",
                        "path": "/spec/template/spec/note",
                        "valueFrom": {
                            "template": "{{ .builtin.cluster.name }}/{{ .builtin.machineDeployment.topologyName }}"
                            "={{ .machine.memory | lower }}"
                        },
                    },
                ],
            }
        ],
    },
    {
        "name": "audit",
        "enabledIf": "{{ .audit }}",
        "definitions": [
            {
                "selector": {
                    "apiVersion": CONTROL_PLANE_TEMPLATE.api_version,
                    "kind": CONTROL_PLANE_TEMPLATE.kind,
                    "matchResources": {"controlPlane": True},
                },
                "jsonPatches": [
                    {
                        "op": "add",
                        "path": "/spec/template/spec/kubeadmConfigSpec/files",
                        "value": [{"path": "/etc/kubernetes/audit.yaml", "content": "rules: []"}],
                    }
                ],
            }
        ],
    },
]


def template_ref(kind: Resource, name: str) -> dict[str, Any]:
    return {"templateRef": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name}}


def cluster_class(name: str = CLASS, *, templates: str = "", **spec: Any) -> dict[str, Any]:
    """The class alone. `templates` is the name that its templates begin with, `spec` replaces parts."""
    prefix = templates or name
    worker = {
        "class": "worker",
        "bootstrap": template_ref(CONFIG_TEMPLATE, f"{prefix}-worker"),
        "infrastructure": template_ref(generic.TEMPLATE, f"{prefix}-worker"),
    }
    made: dict[str, Any] = {
        "infrastructure": template_ref(generic.CLUSTER_TEMPLATE, prefix),
        "controlPlane": {
            **template_ref(CONTROL_PLANE_TEMPLATE, prefix),
            "machineInfrastructure": template_ref(generic.TEMPLATE, f"{prefix}-cp"),
        },
        "workers": {"machineDeployments": [worker]},
        "variables": copy.deepcopy(VARIABLES),
        "patches": copy.deepcopy(PATCHES),
        **spec,
    }
    return _object(CLUSTER_API, "ClusterClass", name, {key: value for key, value in made.items() if value is not None})


def templates(prefix: str = CLASS, **machine: Any) -> list[dict[str, Any]]:
    """What a class refers to; `machine` goes into both templates of machines."""
    registration = {"kubeletExtraArgs": _PROVIDER_ID}
    joined = {"joinConfiguration": {"nodeRegistration": registration}}
    config = {"kubeadmConfigSpec": {"initConfiguration": {"nodeRegistration": registration}, **joined}}
    return [
        _object(f"{generic.GROUP}/v1", "GenericClusterTemplate", prefix, {"template": {"spec": {}}}),
        _object(
            CONTROL_PLANE_TEMPLATE.api_version, CONTROL_PLANE_TEMPLATE.kind, prefix, {"template": {"spec": config}}
        ),
        machine_template(f"{prefix}-cp", **machine),
        machine_template(f"{prefix}-worker", **machine),
        _object(CONFIG_TEMPLATE.api_version, CONFIG_TEMPLATE.kind, f"{prefix}-worker", {"template": {"spec": joined}}),
    ]


def machine_template(name: str, **machine: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"disk": "20Gi", **machine}}}
    return _object(f"{generic.GROUP}/v1", "GenericMachineTemplate", name, spec)


def whole_class(name: str = CLASS, **spec: Any) -> list[dict[str, Any]]:
    return [*templates(name), cluster_class(name, **spec)]


def deployment(name: str, replicas: int | None = 1, **more: Any) -> dict[str, Any]:
    count = {} if replicas is None else {"replicas": replicas}
    return {"class": "worker", "name": name, **count, **more}


def topology(
    name: str,
    control_planes: int = 1,
    workers: Mapping[str, int] | list[dict[str, Any]] | None = None,
    version: str = "v1.30.0",
    *,
    cluster_class: str = CLASS,
    variables: Mapping[str, Any] | None = None,
    annotations: Mapping[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A Cluster of the class. `workers`: replicas by name of the deployment, or deployments as they are."""
    listed = workers if isinstance(workers, list) else [deployment(k, v) for k, v in (workers or {}).items()]
    held: dict[str, Any] = {
        "classRef": {"name": cluster_class},
        "version": version,
        "controlPlane": {"replicas": control_planes},
        **({"workers": {"machineDeployments": listed}} if listed else {}),
        **({"variables": [{"name": k, "value": v} for k, v in variables.items()]} if variables else {}),
        **more,
    }
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}}
    noted = {"annotations": dict(annotations)} if annotations else {}
    return _object(CLUSTER_API, "Cluster", name, {"clusterNetwork": network, "topology": held}, **noted)


# -- looking ---------------------------------------------------------------------------------------------------------


async def have_class(h: Harness, name: str = CLASS, **spec: Any) -> None:
    """The class with its templates, ready for use."""
    await h.plane.have(*whole_class(name, **spec))
    await h.until(ClusterClass, name, class_ready, what="being ready")


def class_ready(obj: ClusterClass) -> bool:
    ready = condition.is_true(obj.status.conditions, "VariablesReady")
    return ready and obj.status.observed_generation == obj.metadata.generation


async def control_plane(h: Harness, name: str) -> KubeadmControlPlane:
    cluster = await h.client.get(Cluster, Key(NAMESPACE, name))
    assert cluster.spec.control_plane_ref is not None
    return await h.client.get(KubeadmControlPlane, Key(NAMESPACE, cluster.spec.control_plane_ref.name))


async def deployments(h: Harness, name: str) -> dict[str, MachineDeployment]:
    """By their names in the topology."""
    found = await h.client.list(MachineDeployment, Query(namespace=NAMESPACE, labels=f"{CLUSTER_LABEL}={name}"))
    return {each.metadata.labels[DEPLOYMENT_LABEL]: each for each in found.items}


async def machines(h: Harness, name: str, deployment: str = "") -> dict[str, Machine]:
    """By name: those of one deployment, or those of the control plane."""
    label = f"{DEPLOYMENT_LABEL}={deployment}" if deployment else "cluster.x-k8s.io/control-plane"
    found = await h.client.list(Machine, Query(namespace=NAMESPACE, labels=f"{CLUSTER_LABEL}={name},{label}"))
    return {each.metadata.name: each for each in found.items}


async def infra_template(h: Harness, obj: KubeadmControlPlane | MachineDeployment) -> dict[str, Any]:
    """The machines' spec that something refers to."""
    ref = (obj.spec.machine_template if isinstance(obj, KubeadmControlPlane) else obj.spec.template).spec
    assert ref.infrastructure_ref is not None
    found = await h.client.get(generic.TEMPLATE, Key(NAMESPACE, ref.infrastructure_ref.name))
    return dict(found["spec"]["template"]["spec"])


def reconciled(cluster: Cluster) -> bool:
    found = condition.find(cluster.status.conditions, "TopologyReconciled")
    return (
        found is not None and found["status"] == "True" and found["observedGeneration"] == cluster.metadata.generation
    )


async def steady(
    h: Harness,
    name: str,
    control_planes: int,
    workers: Mapping[str, int] | None = None,
    version: str = "v1.30.0",
    timeout: float = 3600.0,
) -> None:
    """The topology says that it is done, and all that it names is there, available and up to date."""
    await h.until(Cluster, name, reconciled, timeout, what="its topology being reconciled")
    plane = await control_plane(h, name)
    await h.until(
        KubeadmControlPlane,
        plane.metadata.name,
        lambda k: _settled(k, control_planes) and [v.version for v in k.status.versions] == [version],
        timeout,
        what=f"{control_planes} control planes at {version}",
    )
    found = await deployments(h, name)
    assert sorted(found) == sorted(workers or {})
    for called, count in (workers or {}).items():
        await h.until(
            MachineDeployment,
            found[called].metadata.name,
            lambda m, count=count: _settled(m, count) and m.spec.template.spec.version == version,  # type: ignore[misc]
            timeout,
            what=f"{count} workers at {version}",
        )


def _settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = [each or 0 for each in (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)]
    return bool(counted == [replicas] * 4 and (s.observed_generation or 0) >= obj.metadata.generation)
