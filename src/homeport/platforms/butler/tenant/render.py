"""The objects of a tenant cluster, as they are applied. Pure."""

from __future__ import annotations

from typing import Any

from homeport.capi.name import CLUSTER_NAME_LABEL, DEPLOYMENT_NAME_LABEL
from homeport.platforms.butler.addon.render import render_defined
from homeport.platforms.butler.name import ENVIRONMENT_LABEL
from homeport.platforms.butler.tenant.blueprint import AddonRequest, Blueprint, ControlPlane, WorkerGroup
from homeport.platforms.butler.tenant.name import (
    ADDON_LABEL,
    DEFAULT_ADDONS,
    MACHINE_SIZE,
    PROVIDER_CONFIG,
    WORKER_IMAGE,
    addon_name,
    hashed,
)
from homeport.platforms.butler.tenant.node import render_control_plane, render_join

Json = dict[str, Any]

_CAPI = "cluster.x-k8s.io/v1beta2"
_REPLACING = ("cilium",)  # network plugins that take the place of kube-proxy


def render_objects(blueprint: Blueprint) -> list[Json]:
    """In the order in which they are applied: what is referred to comes first, and the Cluster starts everything."""
    control_plane = _hosted(blueprint) if blueprint.control_plane.hosted else _on_machines(blueprint)
    workers = [each for group in blueprint.workers for each in _group(blueprint, group)]
    return [*map(_labelled(blueprint), blueprint.infra), *control_plane, *workers, _cluster(blueprint)]


def _labelled(blueprint: Blueprint) -> Any:
    def apply(obj: Json) -> Json:
        meta = obj["metadata"]
        labels = {**(meta.get("labels") or {}), **blueprint.labels, CLUSTER_NAME_LABEL: blueprint.name}
        return {**obj, "metadata": {**meta, "namespace": blueprint.namespace, "labels": labels}}

    return apply


def _meta(blueprint: Blueprint, name: str, **more: Any) -> Json:
    labels = {**blueprint.labels, CLUSTER_NAME_LABEL: blueprint.name}
    return {"name": name, "namespace": blueprint.namespace, "labels": labels, **more}


def _ref(obj: Json) -> Json:
    group = obj["apiVersion"].partition("/")[0]
    return {"apiGroup": group, "kind": obj["kind"], "name": obj["metadata"]["name"]}


def _cluster(blueprint: Blueprint) -> Json:
    hosted = blueprint.control_plane.hosted
    kind = "StewardControlPlane" if hosted else "KubeadmControlPlane"
    spec: Json = {
        "clusterNetwork": {
            "pods": {"cidrBlocks": [blueprint.pod_cidr]},
            "services": {"cidrBlocks": [blueprint.service_cidr]},
        },
        "infrastructureRef": _ref(blueprint.infra[-1]),
        "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": kind, "name": blueprint.name},
        "paused": blueprint.paused,
    }
    notes = {DEFAULT_ADDONS: ",".join(blueprint.default_addons), PROVIDER_CONFIG: blueprint.provider}
    if blueprint.environment:
        notes[ENVIRONMENT_LABEL] = blueprint.environment
    meta = _meta(blueprint, blueprint.name, annotations=notes)
    return {"apiVersion": _CAPI, "kind": "Cluster", "metadata": meta, "spec": spec}


# -- control plane -------------------------------------------------------------------------------------------------


def has_kube_proxy(blueprint: Blueprint) -> bool:
    return not any(
        each.name == "cni" and each.addon in _REPLACING and each.definition is None for each in blueprint.addons
    )


def _hosted(blueprint: Blueprint) -> list[Json]:
    plane = blueprint.control_plane
    addons: Json = {"coreDNS": {}, "konnectivity": {}}
    if has_kube_proxy(blueprint):
        addons["kubeProxy"] = {}
    spec: Json = {
        "version": plane.version,
        "replicas": plane.replicas,
        "addons": addons,
        "network": _network(plane),
        **{program: {"resources": resources} for program, resources in plane.resources.items()},
    }
    if plane.data_store:
        spec["dataStoreName"] = plane.data_store
    return [
        {
            "apiVersion": "controlplane.cluster.x-k8s.io/v1alpha1",
            "kind": "StewardControlPlane",
            "metadata": _meta(blueprint, blueprint.name),
            "spec": spec,
        }
    ]


def _network(plane: ControlPlane) -> Json:
    found: Json = {"serviceType": plane.service_type}
    if plane.address:
        found["serviceAddress"] = plane.address
    if plane.cert_sans:
        found["certSANs"] = list(plane.cert_sans)
    return found


def _on_machines(blueprint: Blueprint) -> list[Json]:
    plane = blueprint.control_plane
    assert plane.machine is not None
    template = _machine_template(blueprint, f"{blueprint.name}-control-plane", plane.machine)
    first = blueprint.workers[0]
    config = render_control_plane(
        plane.version,
        first.os,
        kube_proxy=has_kube_proxy(blueprint),
        ssh_keys=first.ssh_keys,
        time_servers=first.time_servers,
    )
    if plane.cert_sans:
        config["clusterConfiguration"]["apiServer"] = {"certSANs": list(plane.cert_sans)}
    size = {MACHINE_SIZE: plane.size}
    made = {
        "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmControlPlane",
        "metadata": _meta(blueprint, blueprint.name, annotations=size),
        "spec": {
            "replicas": plane.replicas,
            "version": plane.version,
            "machineTemplate": {"metadata": {"annotations": size}, "spec": {"infrastructureRef": _ref(template)}},
            "kubeadmConfigSpec": config,
        },
    }
    return [template, made]


# -- workers -------------------------------------------------------------------------------------------------------


def _group(blueprint: Blueprint, group: WorkerGroup) -> list[Json]:
    name = f"{blueprint.name}-{group.name}"
    machine = _machine_template(blueprint, name, group.machine)
    join = render_join(
        group.version,
        group.os,
        labels=group.labels,
        taints=group.taints,
        ssh_keys=group.ssh_keys,
        time_servers=group.time_servers,
    )
    config = {
        "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
        "kind": "KubeadmConfigTemplate",
        "metadata": _meta(blueprint, hashed(name, join)),
        "spec": {"template": {"spec": join}},
    }
    template = {
        "clusterName": blueprint.name,
        "version": group.version,
        "bootstrap": {"configRef": _ref(config)},
        "infrastructureRef": _ref(machine),
    }
    # As the webhooks fill them in: on another Kubernetes there are none, and its schema requires the selector.
    labels, size = {CLUSTER_NAME_LABEL: blueprint.name, DEPLOYMENT_NAME_LABEL: name}, {MACHINE_SIZE: group.size}
    deployment = {
        "apiVersion": _CAPI,
        "kind": "MachineDeployment",
        "metadata": _meta(blueprint, name, annotations={WORKER_IMAGE: group.image, **size}),
        "spec": {
            "clusterName": blueprint.name,
            "replicas": group.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": size}, "spec": template},
        },
    }
    return [machine, config, deployment]


def _machine_template(blueprint: Blueprint, name: str, machine: Json) -> Json:
    """Machines never change: other content is another template, and what refers to it rolls."""
    return {
        "apiVersion": machine["apiVersion"],
        "kind": machine["kind"],
        "metadata": _meta(blueprint, hashed(name, machine)),
        "spec": machine["spec"],
    }


# -- add-ons -------------------------------------------------------------------------------------------------------


def render_addon(blueprint: Blueprint, request: AddonRequest, owner: Json) -> Json:
    """`owner`: a reference to the Cluster. The add-on goes with it."""
    spec: Json = {"clusterName": blueprint.name}
    if request.definition is not None:
        spec |= render_defined(request.definition, request.version, request.values)
    else:
        spec |= _listed(request)
    if request.depends_on:
        spec["dependsOn"] = [{"name": each} for each in request.depends_on]
    meta = _meta(blueprint, addon_name(blueprint.name, request.addon), ownerReferences=[owner])
    meta["labels"][ADDON_LABEL] = request.name
    return {"apiVersion": "addons.homeport.dev/v1alpha1", "kind": "ClusterAddon", "metadata": meta, "spec": spec}


def _listed(request: AddonRequest) -> Json:
    """An add-on of the catalogue of Homeport."""
    spec: Json = {"addon": request.addon}
    if request.version:
        spec["version"] = request.version
    if request.parameters:
        spec["parameters"] = request.parameters
    if request.values:
        spec["values"] = request.values
    return spec
