"""Keeps what kubeadm put into a workload cluster in step with the control plane: its ConfigMap, rights and add-ons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured, wire
from homeport.capi import version as versions
from homeport.capi.name import SKIP_COREDNS, SKIP_KUBE_PROXY
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.controlplane.kubeadm.desired import Json, kubeadm_spec
from homeport.controlplane.kubeadm.workload import addon
from homeport.controlplane.kubeadm.workload.clusterconfig import updated, with_dns
from homeport.machinery import yaml

SYSTEM = "kube-system"
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
CLUSTER_ROLE_BINDING = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
KUBEADM_CONFIG = Key(SYSTEM, "kubeadm-config")
_CONFIGURATION = "ClusterConfiguration"
_COREFILE, _BACKUP = "Corefile", "Corefile-backup"
_WRITE = Write(field_manager="homeport-kubeadm-control-plane")

# Rights that newer versions of kubeadm count on and `kubeadm upgrade` would give: (from, up to, name, role, subject).
_RIGHTS = (
    ((1, 29), (99, 0), "kubeadm:cluster-admins", "cluster-admin", ("Group", "kubeadm:cluster-admins")),
    (
        (0, 0),
        (1, 38),
        "kubeadm:apiserver-kubelet-client",
        "system:kubelet-api-admin",
        ("User", "kube-apiserver-kubelet-client"),
    ),
)


class UpkeepError(Exception):
    """Something in the workload cluster is not as kubeadm leaves it; says what to do."""


async def observe_configuration(client: Client) -> Unstructured | None:
    """The ConfigMap that `kubeadm init` writes when it has come so far that others can join."""
    return await find_object(client, CONFIG_MAP, KUBEADM_CONFIG)


async def hold_cluster_configuration(
    client: Client, kcp: KubeadmControlPlane, found: Unstructured | None = None
) -> bool:
    """Joining machines take their configuration from here: it must be right before they come.

    `found` is the ConfigMap if the caller has just read it.
    """
    wanted: Json = (
        kubeadm_spec(kcp.spec.kubeadm_config_spec, kcp.spec.version, join=True).get("clusterConfiguration") or {}
    )
    return await _change_configuration(client, lambda current: updated(current, wanted, kcp.spec.version), found)


async def _change_configuration(client: Client, change: Any, found: Unstructured | None = None) -> bool:
    found = found or await observe_configuration(client)
    if found is None:
        raise UpkeepError(
            f"the workload cluster has no ConfigMap {KUBEADM_CONFIG}, so no machine can join: restore it (`kubeadm "
            "init phase upload-config kubeadm`)"
        )
    text = (found.get("data") or {}).get(_CONFIGURATION)
    current = yaml.load(text, source=f"ConfigMap {KUBEADM_CONFIG}") if text else None
    if not isinstance(current, Mapping):
        raise UpkeepError(f"ConfigMap {KUBEADM_CONFIG} of the workload cluster has no {_CONFIGURATION}: restore it")
    wanted = change(current)
    if wanted == current:
        return False
    body = {
        "metadata": {"resourceVersion": found.resource_version},
        "data": {_CONFIGURATION: yaml.dump(wanted)},
    }
    await client.patch(CONFIG_MAP, KUBEADM_CONFIG, MergePatch(body), _WRITE)
    return True


async def hold_rights(client: Client, version: str) -> None:
    line = versions.parse(version).line
    for first, last, name, role, (kind, subject) in _RIGHTS:
        if not first <= line < last:
            continue
        try:
            await client.get(CLUSTER_ROLE_BINDING, Key("", name))
        except NotFound:
            body = {
                "apiVersion": CLUSTER_ROLE_BINDING.api_version,
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": {"apiGroup": CLUSTER_ROLE_BINDING.group, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": CLUSTER_ROLE_BINDING.group, "kind": kind, "name": subject}],
            }
            try:
                await client.create(body, _WRITE, kind=CLUSTER_ROLE_BINDING)
            except AlreadyExists:
                continue


async def hold_kube_proxy(client: Client, kcp: KubeadmControlPlane) -> bool:
    if SKIP_KUBE_PROXY in kcp.metadata.annotations:
        return False
    key = Key(SYSTEM, addon.KUBE_PROXY)
    try:
        found = await client.get(DAEMON_SET, key)
    except NotFound:
        return False  # something else does its work
    current = addon.container_image(found, addon.KUBE_PROXY)
    repository = kcp.spec.kubeadm_config_spec.cluster_configuration.image_repository
    wanted = addon.kube_proxy_image(current, kcp.spec.version, repository) if current else ""
    if wanted == current:
        return False
    await client.patch(DAEMON_SET, key, _image_patch(found, addon.KUBE_PROXY, wanted), _WRITE)
    return True


async def hold_coredns(client: Client, kcp: KubeadmControlPlane) -> bool:
    """Raises AddonError for an image that can't follow the one that runs."""
    configuration: Json = wire(kcp.spec.kubeadm_config_spec.cluster_configuration)
    if SKIP_COREDNS in kcp.metadata.annotations or not (
        configuration.get("dns") or configuration.get("imageRepository")
    ):
        return False
    key = Key(SYSTEM, addon.COREDNS)
    try:
        deployment = await client.get(DEPLOYMENT, key)
        corefile = await client.get(CONFIG_MAP, key)
    except NotFound:
        return False
    current = addon.container_image(deployment, addon.COREDNS)
    wanted = addon.coredns_image(current, configuration) if current else ""
    if wanted == current:
        return False
    addon.check_coredns(current, wanted)
    await _change_configuration(client, lambda known: with_dns(known, configuration.get("dns") or {}))
    text = str((corefile.get("data") or {}).get(_COREFILE) or "")
    before, after = (addon.numbers(addon.parse_image(each).tag) for each in (current, wanted))
    migrated = addon.migrated_corefile(text, before, after)
    if migrated != text:
        # The old one is kept for a rollback.
        body = {
            "metadata": {"resourceVersion": corefile.resource_version},
            "data": {_COREFILE: migrated, _BACKUP: text},
        }
        await client.patch(CONFIG_MAP, key, MergePatch(body), _WRITE)
    await client.patch(DEPLOYMENT, key, _image_patch(deployment, addon.COREDNS, wanted), _WRITE)
    return True


def _image_patch(workload: Mapping[str, Any], container: str, image: str) -> MergePatch:
    """Merge patches replace lists whole: all containers, for this very state of the object."""
    containers = [dict(each) for each in workload["spec"]["template"]["spec"]["containers"]]
    for each in containers:
        if each["name"] == container:
            each["image"] = image
    return MergePatch(
        {
            "metadata": {"resourceVersion": workload["metadata"]["resourceVersion"]},
            "spec": {"template": {"spec": {"containers": containers}}},
        }
    )
