"""What `kubeadm init` puts into a new cluster besides roles and addons."""

from __future__ import annotations

import base64
import secrets
import string
from collections.abc import Iterator

from homeport.api.meta import Resource
from homeport.runtime.clock import rfc3339
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.kind import CONFIG_MAP, SECRET, Json
from homeport.sim.machine.workload.trust.authority import ClusterPki
from homeport.sim.machine.workload.trust.rbac import BOOTSTRAPPERS

_SYSTEM = "kube-system"
_ALPHABET = string.ascii_lowercase + string.digits
TOKEN_SECONDS = 24 * 3600


def config_maps(facts: Facts, pki: ClusterPki) -> Iterator[tuple[Json, Resource]]:
    yield _map(_SYSTEM, "kubeadm-config", {"ClusterConfiguration": _yaml(facts.configuration)})
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}},
        "cgroupDriver": "systemd",
        "clusterDomain": facts.dns_domain,
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
        **facts.kubelet,
    }
    yield _map(_SYSTEM, "kubelet-config", {"kubelet": _yaml(kubelet)})
    yield _map("kube-public", "cluster-info", {"kubeconfig": pki.cluster_info(facts.server)})


def admin_map() -> tuple[Json, Resource]:
    """Talos and k0s have no kubeadm-config; something has to say that the cluster is up all the same."""
    return _map(_SYSTEM, "cluster-bootstrap", {"bootstrapped": "true"})


def bootstrap_tokens(entries: list[Json], now: float) -> Iterator[tuple[Json, Resource]]:
    """Those of the configuration; without any, kubeadm makes one that is good for a day."""
    for entry in entries or [{"token": random_token(), "description": "The default bootstrap token of kubeadm init."}]:
        yield bootstrap_token(entry, now)


def bootstrap_token(entry: Json, now: float) -> tuple[Json, Resource]:
    identity, _, secret = str(entry.get("token") or random_token()).partition(".")
    groups = entry.get("groups") or [BOOTSTRAPPERS]
    usages = entry.get("usages") or ["signing", "authentication"]
    data: dict[str, str] = {
        "token-id": identity,
        "token-secret": secret,
        "description": str(entry.get("description") or ""),
        "auth-extra-groups": ",".join(groups),
        **{f"usage-bootstrap-{usage}": "true" for usage in usages},
    }
    seconds = duration(entry.get("ttl"), TOKEN_SECONDS)
    if entry.get("expires"):
        data["expiration"] = str(entry["expires"])
    elif seconds:
        data["expiration"] = rfc3339(now + seconds)
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items() if value}
    meta = {"name": f"bootstrap-token-{identity}", "namespace": _SYSTEM}
    return {"metadata": meta, "type": "bootstrap.kubernetes.io/token", "data": encoded}, SECRET


def random_token() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(22))
    return f"{letters[:6]}.{letters[6:]}"


def duration(value: object, default: float) -> float:
    """`24h0m0s`, `15m`, `40s` in seconds."""
    if value in (None, ""):
        return default
    total, number = 0.0, ""
    for char in str(value):
        if char.isdigit() or char == ".":
            number += char
        elif number:
            total += float(number) * {"h": 3600, "m": 60, "s": 1}.get(char, 0)
            number = ""
    return total


def _map(namespace: str, name: str, data: dict[str, str]) -> tuple[Json, Resource]:
    return {"metadata": {"name": name, "namespace": namespace}, "data": data}, CONFIG_MAP


def _yaml(value: Json) -> str:
    return yaml.dump(value)
