"""The cluster that is imported, as its own API server reports it. Nothing in it is changed here."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.app.importer import configuration
from homeport.app.importer.match import is_control_plane, kubelet_version
from homeport.capi.remote.workload import NODE
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.machinery import yaml

Json = dict[str, Any]

_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_POD = Resource("", "v1", "Pod", "pods")
_SYSTEM = "kube-system"
_KUBEADM = Key(_SYSTEM, "kubeadm-config")
_VIP = "kube-vip"
_VIP_FILE = "/etc/kubernetes/manifests/kube-vip.yaml"
_CCM = "cloud-controller-manager"


class Refused(Exception):
    """The import can't be done, or must not; says every reason, and what to do."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Running:
    """What runs. `authorities` and `front_proxies` are certificates (PEM) that the API server publishes."""

    nodes: tuple[Unstructured, ...]
    configuration: Mapping[str, Any]
    authorities: tuple[bytes, ...]
    front_proxies: tuple[bytes, ...] = ()
    vip: str = ""  # the manifest of kube-vip; '': its control planes run none
    cloud_manager: bool = False  # a cloud controller manager runs in it

    @property
    def control_planes(self) -> list[Unstructured]:
        return [each for each in self.nodes if is_control_plane(each)]

    @property
    def version(self) -> str:
        return kubelet_version(self.control_planes[0])

    @property
    def endpoint(self) -> tuple[str, int]:
        found = configuration.endpoint(self.configuration)
        assert found is not None  # checked
        return found

    @property
    def vip_file(self) -> list[Json]:
        if not self.vip:
            return []
        return [{"path": _VIP_FILE, "owner": "root:root", "permissions": "0600", "content": self.vip}]


async def read_running(client: Client) -> Running:
    """Raises Refused, ApiError."""
    found = await _config_map(client, _KUBEADM)
    if found is None:
        raise Refused(
            f"the cluster has no ConfigMap {_KUBEADM}: only clusters that kubeadm created can be imported. Check that "
            "the kubeconfig leads to the right cluster"
        )
    text = (found.get("data") or {}).get("ClusterConfiguration") or ""
    parsed = yaml.load(text, source=f"ConfigMap {_KUBEADM}") if text else None
    if not isinstance(parsed, Mapping):
        raise Refused(
            f"ConfigMap {_KUBEADM} has no ClusterConfiguration: restore it with `kubeadm init phase upload-config`"
        )
    nodes = tuple((await client.list(NODE, Query())).items)
    pods = (await client.list(_POD, Query(namespace=_SYSTEM))).items
    authentication = await _config_map(client, Key(_SYSTEM, "extension-apiserver-authentication"))
    published = _data(authentication)
    running = Running(
        nodes=nodes,
        configuration=parsed,
        authorities=await _authorities(client, published),
        front_proxies=_texts(published.get("requestheader-client-ca-file")),
        vip=_vip_manifest(pods),
        cloud_manager=any(_CCM in each.name or "-ccm" in each.name for each in pods),
    )
    if problems := check_running(running):
        raise Refused(*problems)
    return running


async def _config_map(client: Client, key: Key) -> Unstructured | None:
    try:
        return await client.get(_CONFIG_MAP, key)
    except (NotFound, Forbidden):
        return None


async def _authorities(client: Client, published: Mapping[str, str]) -> tuple[bytes, ...]:
    """From every place where the cluster publishes its CA."""
    found = [*_texts(published.get("client-ca-file"))]
    root = await _config_map(client, Key(_SYSTEM, "kube-root-ca.crt"))
    found += _texts(_data(root).get("ca.crt"))
    info = await _config_map(client, Key("kube-public", "cluster-info"))
    content = _data(info).get("kubeconfig")
    if content:
        found += [each for each in (_embedded(content),) if each]
    return tuple(dict.fromkeys(found))


def _data(found: Unstructured | None) -> Mapping[str, str]:
    data: Mapping[str, str] = (found.get("data") or {}) if found is not None else {}
    return data


def _embedded(content: str) -> bytes:
    """The CA in the kubeconfig of cluster-info, which names no user."""
    try:
        parsed = yaml.load(content, source="ConfigMap kube-public/cluster-info")
        [cluster] = parsed["clusters"]
        return base64.b64decode(cluster["cluster"]["certificate-authority-data"], validate=True)
    except (KeyError, TypeError, ValueError):
        return b""


def _texts(text: str | None) -> tuple[bytes, ...]:
    return (text.encode(),) if text else ()


def check_running(running: Running) -> list[str]:
    """Why this cluster can't become one of ours, whatever its VMs are."""
    found = running.configuration
    problems = []
    planes = running.control_planes
    if not planes:
        problems.append(
            "no Node has the label node-role.kubernetes.io/control-plane: the control plane can't be managed"
        )
    if configuration.endpoint(found) is None:
        problems.append(
            f"ConfigMap {_KUBEADM} has no controlPlaneEndpoint, so no control plane could join: set up an address for "
            "the control plane first (kubeadm: `Options for Highly Available Topology`)"
        )
    if (found.get("etcd") or {}).get("external"):
        problems.append("etcd is external: only clusters whose control planes run etcd can be imported")
    problems += _version_problems(planes, str(found.get("kubernetesVersion") or ""))
    problems += [
        f"Node {each.name} is not Ready: an import needs a healthy cluster"
        for each in running.nodes
        if not _is_ready(each)
    ]
    return problems


def _version_problems(planes: Sequence[Unstructured], configured: str) -> list[str]:
    versions = {kubelet_version(each) for each in planes}
    if len(versions) > 1:
        shown = ", ".join(f"{each.name} {kubelet_version(each)}" for each in planes)
        return [f"control planes have different versions ({shown}): finish the upgrade first"]
    if versions and configured and configured not in versions:
        return [
            f"ConfigMap {_KUBEADM} has kubernetesVersion {configured}, and control planes run {versions.pop()}: finish "
            "the upgrade first"
        ]
    return []


def _is_ready(node: Unstructured) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _vip_manifest(pods: Sequence[Unstructured]) -> str:
    """Of the static Pod, as a control plane that joins needs it: without what the kubelet added, and with admin.conf,
    because only the first control plane ever has super-admin.conf."""
    found = next((each for each in pods if each.name.startswith(f"{_VIP}-") and _is_mirror(each)), None)
    if found is None:
        return ""
    spec = {name: value for name, value in found["spec"].items() if name in _KEPT}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _VIP, "namespace": _SYSTEM}, "spec": spec}
    return yaml.dump(pod).replace("/etc/kubernetes/super-admin.conf", "/etc/kubernetes/admin.conf")


_KEPT = ("containers", "hostAliases", "hostNetwork", "volumes")


def _is_mirror(pod: Unstructured) -> bool:
    return "kubernetes.io/config.mirror" in (pod.metadata.get("annotations") or {})
