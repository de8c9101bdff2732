"""Static Pods, and the mirror Pods by which the API shows them."""

from __future__ import annotations

import functools
import hashlib

import orjson

from homeport.runtime.clock import rfc3339
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.machine.workload.kind import Json

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_ETCD = {28: "3.5.9-0", 29: "3.5.10-0", 30: "3.5.15-0", 31: "3.5.15-0", 32: "3.5.16-0", 33: "3.5.21-0", 34: "3.6.4-0"}


def component(name: str, facts: Facts, address: str, port: int) -> Json:
    """The manifest that kubeadm writes for a component of the control plane."""
    annotations: dict[str, str] = {}
    if name == "etcd":
        annotations["kubeadm.kubernetes.io/etcd.advertise-client-urls"] = f"https://{_host(address)}:2379"
    elif name == "kube-apiserver":
        annotations["kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint"] = f"{_host(address)}:{port}"
    container = {"name": name, "image": _image(name, facts), "command": [name, *_arguments(name, facts, address, port)]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"component": name, "tier": "control-plane"},
            "annotations": annotations,
        },
        "spec": {"containers": [container], "hostNetwork": True, "priorityClassName": "system-node-critical"},
    }


def _image(name: str, facts: Facts) -> str:
    if name != "etcd":
        return f"{facts.image_repository}/{name}:{facts.version}"
    local = (facts.configuration.get("etcd") or {}).get("local") or {}
    tag = local.get("imageTag") or _ETCD.get(parse_version(facts.version)[1], "3.6.4-0")
    return f"{local.get('imageRepository') or facts.image_repository}/etcd:{tag}"


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _arguments(name: str, facts: Facts, address: str, port: int) -> list[str]:
    if name == "etcd":
        own: dict[str, str] = {"advertise-client-urls": f"https://{_host(address)}:2379", "data-dir": "/var/lib/etcd"}
        extra = ((facts.configuration.get("etcd") or {}).get("local") or {}).get("extraArgs")
    else:
        field = {"kube-apiserver": "apiServer", "kube-controller-manager": "controllerManager"}.get(name, "scheduler")
        extra = (facts.configuration.get(field) or {}).get("extraArgs")
        own = {"kubeconfig": f"/etc/kubernetes/{name.removeprefix('kube-')}.conf"}
        if name == "kube-apiserver":
            own = {
                "advertise-address": address,
                "client-ca-file": "/etc/kubernetes/pki/ca.crt",
                "secure-port": str(port),
                "service-cluster-ip-range": facts.service_subnet,
            }
    return [f"--{key}={value}" for key, value in sorted({**own, **arguments(extra)}.items())]


def arguments(extra: object) -> dict[str, str]:
    """extraArgs: a map in v1beta3, a list of names and values in v1beta4."""
    if isinstance(extra, dict):
        return {str(key): str(value) for key, value in extra.items()}
    if isinstance(extra, list):
        return {str(each.get("name")): str(each.get("value", "")) for each in extra if isinstance(each, dict)}
    return {}


@functools.lru_cache(maxsize=64)  # kubeadm and the kubelet read the same files one after the other
def read_manifest(text: str) -> Json | None:
    """A Pod in a manifest file, not to be changed; None for anything that the kubelet would not run."""
    try:
        found = yaml.load(text)
    except yaml.YAMLError:
        return None
    if not isinstance(found, dict) or found.get("kind") != "Pod" or not (found.get("metadata") or {}).get("name"):
        return None
    return found if isinstance((found.get("spec") or {}).get("containers"), list) else None


def mirror(manifest: Json, node: Json, seen: float) -> Json:
    """The Pod that stands in the API for a static Pod of a node."""
    name = node["metadata"]["name"]
    meta = manifest["metadata"]
    content = orjson.dumps(manifest, default=str, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    digest = hashlib.sha256(content).hexdigest()[:32]
    marks = {
        "kubernetes.io/config.hash": digest,
        "kubernetes.io/config.mirror": digest,
        "kubernetes.io/config.seen": rfc3339(seen),
        "kubernetes.io/config.source": "file",
    }
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
    return {
        "metadata": {
            "name": f"{meta['name']}-{name}",
            "namespace": meta.get("namespace") or "default",
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**(meta.get("annotations") or {}), **marks},
            "ownerReferences": [owner],
        },
        "spec": {**manifest["spec"], "nodeName": name, "tolerations": [{"effect": "NoExecute", "operator": "Exists"}]},
    }
