"""kubeadm's own configuration, in the version that the machine's kubeadm reads.

Input is the wire form of our v1beta2 types, which follow kubeadm's v1beta4; v1beta3 has fewer fields and other shapes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from homeport.capi.version import Version

Json = dict[str, Any]
Api = Literal["v1beta3", "v1beta4"]

_GROUP = "kubeadm.k8s.io"
_OLDEST = (1, 22)
_V1BETA4 = (1, 31)  # kubeadm 1.31 is the first that reads it; v1beta3 is deprecated from there on

# Fields of components and nodes that kubeadm has since v1beta4.
_NEW_IN_COMPONENT = frozenset({"extraEnvs"})
_NEW_IN_NODE = frozenset({"imagePullSerial"})

_TIMEOUTS = {
    "controlPlaneComponentHealthCheckSeconds": "controlPlaneComponentHealthCheck",
    "kubeletHealthCheckSeconds": "kubeletHealthCheck",
    "kubernetesAPICallSeconds": "kubernetesAPICall",
    "etcdAPICallSeconds": "etcdAPICall",
    "tlsBootstrapSeconds": "tlsBootstrap",
    "discoverySeconds": "discovery",
}


class UnsupportedVersion(ValueError):
    """kubeadm of that Kubernetes version reads none of the configurations that we write."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What kubeadm has to know about the cluster and other objects than the config say."""

    cluster_name: str
    kubernetes_version: str
    endpoint: str = ""
    pod_cidrs: tuple[str, ...] = ()
    service_cidrs: tuple[str, ...] = ()
    dns_domain: str = ""


def kubeadm_api(version: Version) -> Api:
    minor = (version.major, version.minor)
    if minor < _OLDEST:
        raise UnsupportedVersion(
            f"Kubernetes {version} is too old: its kubeadm does not support v1beta3 configurations; use v1.22 or newer"
        )
    return "v1beta3" if minor < _V1BETA4 else "v1beta4"


def cluster_configuration(given: Mapping[str, Any], init: Mapping[str, Any], facts: Facts, api: Api) -> Json:
    """`given` is spec.clusterConfiguration; `init` is spec.initConfiguration, where v1beta4 keeps a timeout."""
    document: Json = {"apiVersion": f"{_GROUP}/{api}", "kind": "ClusterConfiguration"}
    document["clusterName"] = facts.cluster_name
    if facts.kubernetes_version:
        document["kubernetesVersion"] = facts.kubernetes_version
    endpoint = given.get("controlPlaneEndpoint") or facts.endpoint
    if endpoint:
        document["controlPlaneEndpoint"] = endpoint
    networking = {
        "dnsDomain": facts.dns_domain,
        "podSubnet": ",".join(facts.pod_cidrs),
        "serviceSubnet": ",".join(facts.service_cidrs),
    }
    _set(document, "networking", {name: value for name, value in networking.items() if value})
    for name in ("certificatesDir", "imageRepository", "featureGates", "dns"):
        _set(document, name, given.get(name))
    for name in ("apiServer", "controllerManager", "scheduler"):
        _set(document, name, _component(given.get(name) or {}, api))
    _set(document, "etcd", _etcd(given.get("etcd") or {}, api))
    if api == "v1beta3":
        seconds = (init.get("timeouts") or {}).get("controlPlaneComponentHealthCheckSeconds")
        if seconds is not None:
            document.setdefault("apiServer", {})["timeoutForControlPlane"] = go_duration(seconds)
        return document
    _set(document, "encryptionAlgorithm", given.get("encryptionAlgorithm"))
    for days, period in (
        ("certificateValidityPeriodDays", "certificateValidityPeriod"),
        ("caCertificateValidityPeriodDays", "caCertificateValidityPeriod"),
    ):
        if given.get(days):
            document[period] = go_duration(int(given[days]) * 86_400)
    return document


def init_configuration(given: Mapping[str, Any], api: Api) -> Json:
    document: Json = {"apiVersion": f"{_GROUP}/{api}", "kind": "InitConfiguration"}
    _set(document, "bootstrapTokens", [_token(each) for each in given.get("bootstrapTokens") or ()])
    _set(document, "nodeRegistration", _registration(given.get("nodeRegistration") or {}, api))
    _set(document, "localAPIEndpoint", given.get("localAPIEndpoint"))
    _finish(document, given, api)
    return document


def join_configuration(given: Mapping[str, Any], api: Api) -> Json:
    """`given` is spec.joinConfiguration with its discovery filled in."""
    document: Json = {"apiVersion": f"{_GROUP}/{api}", "kind": "JoinConfiguration"}
    _set(document, "nodeRegistration", _registration(given.get("nodeRegistration") or {}, api))
    _set(document, "caCertPath", given.get("caCertPath"))
    document["discovery"] = _discovery(given.get("discovery") or {})
    if given.get("controlPlane") is not None:
        document["controlPlane"] = dict(given["controlPlane"])
    seconds = (given.get("timeouts") or {}).get("tlsBootstrapSeconds")
    if api == "v1beta3" and seconds is not None:
        document["discovery"]["timeout"] = go_duration(seconds)
    _finish(document, given, api)
    return document


def go_duration(seconds: int) -> str:
    """As Go writes a time.Duration: `1h0m0s`, `5m0s`, `30s`."""
    sign = "-" if seconds < 0 else ""
    minutes, rest = divmod(abs(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{sign}{hours}h{minutes}m{rest}s"
    return f"{sign}{minutes}m{rest}s" if minutes else f"{sign}{rest}s"


def _finish(document: Json, given: Mapping[str, Any], api: Api) -> None:
    """What init and join have in common."""
    _set(document, "skipPhases", given.get("skipPhases"))
    _set(document, "patches", given.get("patches"))
    if api == "v1beta4":
        asked = given.get("timeouts") or {}
        timeouts = {
            name: go_duration(asked[field]) for field, name in _TIMEOUTS.items() if asked.get(field) is not None
        }
        _set(document, "timeouts", timeouts)


def _component(given: Mapping[str, Any], api: Api) -> Json:
    """Of API server, controller manager, scheduler or local etcd."""
    document: Json = {}
    for name, value in given.items():
        if api == "v1beta3" and name in _NEW_IN_COMPONENT:
            continue
        _set(document, name, _arguments(value, api) if name == "extraArgs" else value)
    return document


def _etcd(given: Mapping[str, Any], api: Api) -> Json:
    if given.get("external"):
        return {"external": dict(given["external"])}
    local = _component(given.get("local") or {}, api)
    return {"local": local} if local else {}


def _registration(given: Mapping[str, Any], api: Api) -> Json:
    document: Json = {}
    for name, value in given.items():
        if api == "v1beta3" and name in _NEW_IN_NODE:
            continue
        if name == "taints":
            if value is not None:
                document[name] = list(value)  # an empty list has a meaning: no taints, not even the usual ones
        else:
            _set(document, name, _arguments(value, api) if name == "kubeletExtraArgs" else value)
    return document


def _arguments(given: Sequence[Mapping[str, Any]], api: Api) -> Any:
    """v1beta3 has a map: of an argument given twice the last one counts, as in the process itself."""
    if api == "v1beta3":
        return {each["name"]: each.get("value") or "" for each in given}
    return [{"name": each["name"], "value": each.get("value") or ""} for each in given]


def _token(given: Mapping[str, Any]) -> Json:
    document: Json = {"token": given.get("token") or ""}
    _set(document, "description", given.get("description"))
    if given.get("ttlSeconds") is not None:
        document["ttl"] = go_duration(given["ttlSeconds"])
    for name in ("expires", "usages", "groups"):
        _set(document, name, given.get(name))
    return document


def _discovery(given: Mapping[str, Any]) -> Json:
    document: Json = {}
    _set(document, "bootstrapToken", given.get("bootstrapToken"))
    file = given.get("file") or {}
    if file.get("kubeConfigPath"):
        document["file"] = {"kubeConfigPath": file["kubeConfigPath"]}  # its content is ours, not kubeadm's
    _set(document, "tlsBootstrapToken", given.get("tlsBootstrapToken"))
    return document


def _set(document: Json, name: str, value: Any) -> None:
    """Values that are there; empty ones mean the same as none to kubeadm."""
    if value is None or value == "" or value == {} or value == []:
        return
    document[name] = value
