"""The ClusterConfiguration in a running cluster, which joining machines read, kept as it should be. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from homeport.capi import version as versions

Json = dict[str, Any]

_GROUP = "kubeadm.k8s.io"
_V1BETA4 = (1, 31)
_COMPONENTS = ("apiServer", "controllerManager", "scheduler")


def api_version(version: str) -> str:
    """What kubeadm of that Kubernetes version writes."""
    return f"{_GROUP}/{'v1beta4' if versions.parse(version).line >= _V1BETA4 else 'v1beta3'}"


def updated(current: Mapping[str, Any], wanted: Mapping[str, Any], version: str) -> Json:
    """`current` (of any version of kubeadm's) brought to Kubernetes `version` and to `wanted`, the wire form of our
    clusterConfiguration. Fields that are not set stay as they are."""
    made = deepcopy(dict(current))
    target = api_version(version)
    new = target.endswith("v1beta4")
    made["apiVersion"], made["kind"], made["kubernetesVersion"] = target, "ClusterConfiguration", version
    for name in _COMPONENTS:
        timeout = (made.get(name) or {}).get("timeoutForControlPlane")
        part = component(wanted.get(name) or {}, new=new)
        if timeout is not None and not new:
            part["timeoutForControlPlane"] = timeout
        _put(made, name, part)
    if wanted.get("imageRepository"):
        made["imageRepository"] = wanted["imageRepository"]
    _put(made, "featureGates", dict(wanted.get("featureGates") or {}))
    _put(made, "etcd", _etcd(made.get("etcd") or {}, wanted.get("etcd") or {}, new=new))
    if new:
        if wanted.get("encryptionAlgorithm"):
            made["encryptionAlgorithm"] = wanted["encryptionAlgorithm"]
        if wanted.get("certificateValidityPeriodDays"):
            made["certificateValidityPeriod"] = f"{wanted['certificateValidityPeriodDays'] * 24}h0m0s"
    else:
        for name in ("encryptionAlgorithm", "certificateValidityPeriod", "caCertificateValidityPeriod", "proxy"):
            made.pop(name, None)
    return made


def with_dns(current: Mapping[str, Any], dns: Mapping[str, Any]) -> Json:
    """With the image of CoreDNS, as `kubeadm upgrade` would read it."""
    made = deepcopy(dict(current))
    known = {
        name: value for name, value in (made.get("dns") or {}).items() if name not in ("imageRepository", "imageTag")
    }
    _put(made, "dns", known | {name: dns[name] for name in ("imageRepository", "imageTag") if dns.get(name)})
    return made


def component(wanted: Mapping[str, Any], *, new: bool) -> Json:
    """apiServer, controllerManager, scheduler or local etcd: the old version knows no environment, and arguments as a
    map, where of several with one name the last counts, as in the process."""
    made: Json = {name: deepcopy(value) for name, value in wanted.items() if value not in (None, [], {}, "")}
    if not new:
        made.pop("extraEnvs", None)
        if "extraArgs" in made:
            made["extraArgs"] = {each["name"]: each.get("value") or "" for each in made["extraArgs"]}
    return made


def _etcd(current: Mapping[str, Any], wanted: Mapping[str, Any], *, new: bool) -> Json:
    if wanted.get("external"):
        return {"external": deepcopy(wanted["external"])}
    if current.get("external"):
        return deepcopy(dict(current))
    local = component(wanted.get("local") or {}, new=new)
    directory = (current.get("local") or {}).get("dataDir")
    if directory and "dataDir" not in local:
        local["dataDir"] = directory
    return {"local": local}


def _put(made: Json, name: str, value: Json) -> None:
    if value:
        made[name] = value
    else:
        made.pop(name, None)
