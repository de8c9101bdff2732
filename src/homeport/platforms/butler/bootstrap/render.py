"""The objects of a management cluster, as they are created. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from homeport.api.butler.v1alpha1 import ClusterBootstrap, MachineRequest
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE
from homeport.capi.name import MANAGED_BY as MANAGED_EXTERNALLY
from homeport.capi.object.ownership import owner_reference
from homeport.client.protocol import Key
from homeport.machinery.talos.config import API_PORT
from homeport.platforms.butler.bootstrap.name import ROLE_LABEL, USER_DATA_KEY, labels_of, user_data_secret
from homeport.platforms.butler.bootstrap.plan import MachinePlan
from homeport.platforms.butler.name import MANAGED_BY, NODE_FINALIZER
from homeport.platforms.butler.normal.bootstrap import BootstrapModel
from homeport.platforms.butler.tenant.blueprint import AddonRequest
from homeport.platforms.butler.tenant.name import ADDON_LABEL, addon_name

Json = dict[str, Any]


def render_cluster(bootstrap: ClusterBootstrap, model: BootstrapModel) -> Json:
    """Without infrastructure and control plane of Cluster API: it stands for the cluster, so that it has a kubeconfig,
    add-ons and a connection like all others."""
    meta = _meta(bootstrap, model, model.name, [owner_reference(bootstrap, controller=True)])
    meta["annotations"] = {MANAGED_EXTERNALLY: MANAGED_BY}
    return {
        "apiVersion": Cluster.__resource__.api_version,
        "kind": "Cluster",
        "metadata": meta,
        "spec": {
            "clusterNetwork": {
                "pods": {"cidrBlocks": [model.pod_cidr]},
                "services": {"cidrBlocks": [model.service_cidr]},
            }
        },
    }


def render_endpoint(host: str) -> Json:
    return {"spec": {"controlPlaneEndpoint": {"host": host, "port": API_PORT}}}


def render_machine(
    bootstrap: ClusterBootstrap, model: BootstrapModel, plan: MachinePlan, provider: Key, image: str, *, data: bool
) -> Json:
    """`data`: its configuration is in a Secret. Otherwise the machine waits until it is sent one."""
    meta = _meta(bootstrap, model, plan.name, [owner_reference(bootstrap, controller=True)])
    meta["labels"][ROLE_LABEL] = plan.role
    if not plan.control_plane:
        meta["finalizers"] = [NODE_FINALIZER]
    size, namespace = plan.size, bootstrap.metadata.namespace
    spec: Json = {
        "providerRef": {"name": provider.name, "namespace": provider.namespace},
        "machineName": plan.name,
        "role": plan.role,
        "cpu": size.cpu,
        "memoryMB": size.memory_mib,
        "diskGB": size.disk_gib,
        "image": image,
    }
    if size.extra_disks:
        spec["extraDisks"] = [wire(each) for each in size.extra_disks]
    if data:
        spec["userDataSecretRef"] = {"name": user_data_secret(namespace, plan.name).name, "key": USER_DATA_KEY}
    at = MachineRequest.__resource__
    return {**at.type_meta, "metadata": meta, "spec": spec}


def render_secret(key: Key, cluster: Cluster, data: Mapping[str, str | bytes]) -> Json:
    """It belongs to the Cluster, and moves with it."""
    encoded = {
        name: base64.b64encode(value.encode() if isinstance(value, str) else value).decode()
        for name, value in data.items()
    }
    meta = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {CLUSTER_NAME_LABEL: cluster.metadata.name},
        "ownerReferences": [owner_reference(cluster)],
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": SECRET_TYPE, "data": encoded}


def render_addon(bootstrap: ClusterBootstrap, model: BootstrapModel, request: AddonRequest, cluster: Cluster) -> Json:
    spec: Json = {"clusterName": model.name, "addon": request.addon}
    for name, value in (("version", request.version), ("parameters", request.parameters), ("values", request.values)):
        if value:
            spec[name] = value
    meta = _meta(bootstrap, model, addon_name(model.name, request.addon), [owner_reference(cluster)])
    meta["labels"][ADDON_LABEL] = request.name
    return {"apiVersion": "addons.homeport.dev/v1alpha1", "kind": "ClusterAddon", "metadata": meta, "spec": spec}


def _meta(bootstrap: ClusterBootstrap, model: BootstrapModel, name: str, owners: list[Json]) -> Json:
    labels = {**labels_of(bootstrap.metadata.name, model.name), CLUSTER_NAME_LABEL: model.name}
    return {"name": name, "namespace": bootstrap.metadata.namespace, "labels": labels, "ownerReferences": owners}
