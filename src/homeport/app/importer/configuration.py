"""The running ClusterConfiguration of kubeadm, in the words of a KubeadmControlPlane. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

_DEFAULT_REPOSITORIES = ("registry.k8s.io", "k8s.gcr.io")
_COMPONENTS = ("apiServer", "controllerManager", "scheduler")
_COMPONENT_FIELDS = ("extraEnvs", "extraVolumes", "certSANs")
_ETCD_FIELDS = ("dataDir", "imageRepository", "imageTag", "extraEnvs", "serverCertSANs", "peerCertSANs")
_PERIODS = {
    "certificateValidityPeriod": "certificateValidityPeriodDays",
    "caCertificateValidityPeriod": "caCertificateValidityPeriodDays",
}
_DURATION = re.compile(r"^(\d+)h0m0s$")


def cluster_configuration(running: Mapping[str, Any]) -> Json:
    """`running` is of kubeadm's v1beta3 or v1beta4; the result is kubeadmConfigSpec.clusterConfiguration."""
    made: Json = {}
    for name in _COMPONENTS:
        _set(made, name, _component(running.get(name) or {}, _COMPONENT_FIELDS))
    local = (running.get("etcd") or {}).get("local") or {}
    etcd = _component(local, _ETCD_FIELDS)
    _set(made, "etcd", {"local": etcd} if etcd else {})
    dns = running.get("dns") or {}
    _set(made, "dns", {name: dns[name] for name in ("imageRepository", "imageTag") if dns.get(name)})
    for name in ("featureGates", "certificatesDir", "encryptionAlgorithm"):
        _set(made, name, running.get(name))
    if running.get("imageRepository") not in (None, "", *_DEFAULT_REPOSITORIES):
        made["imageRepository"] = running["imageRepository"]
    for period, days in _PERIODS.items():
        found = _DURATION.match(str(running.get(period) or ""))
        if found and int(found[1]) >= 24:
            made[days] = int(found[1]) // 24
    return made


def cluster_network(running: Mapping[str, Any]) -> Json:
    networking = running.get("networking") or {}
    made: Json = {}
    for field, name in (("podSubnet", "pods"), ("serviceSubnet", "services")):
        blocks = [each.strip() for each in str(networking.get(field) or "").split(",") if each.strip()]
        if blocks:
            made[name] = {"cidrBlocks": blocks}
    _set(made, "serviceDomain", networking.get("dnsDomain"))
    return made


def endpoint(running: Mapping[str, Any]) -> tuple[str, int] | None:
    """Host and port of controlPlaneEndpoint; None if there is none."""
    text = str(running.get("controlPlaneEndpoint") or "").removeprefix("https://")
    if not text:
        return None
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    return host, int(port) if port.isdigit() else 6443


def _component(running: Mapping[str, Any], fields: tuple[str, ...]) -> Json:
    made: Json = {}
    _set(made, "extraArgs", _arguments(running.get("extraArgs")))
    for name in fields:
        _set(made, name, running.get(name))
    return made


def _arguments(given: Any) -> list[Json]:
    """v1beta3 has a map, v1beta4 a list."""
    if isinstance(given, Mapping):
        return [{"name": name, "value": str(value)} for name, value in sorted(given.items())]
    return [{"name": each["name"], "value": str(each.get("value") or "")} for each in given or ()]


def _set(made: Json, name: str, value: Any) -> None:
    if value not in (None, "", {}, []):
        made[name] = value
