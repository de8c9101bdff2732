"""The k0s.yaml of a controller: what the user wrote, with the Cluster's address and networks filled in. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.capi.k0s.validation import API_VERSION, KIND
from homeport.machinery.address import is_address

Json = dict[str, Any]

PKI_DIR = "/var/lib/k0s/pki"
CONFIG_FILE = "/etc/k0s.yaml"
_PASSWORD_SIZE = 8  # all that VRRP takes


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    host: str
    port: int
    pod_cidrs: tuple[str, ...] = ()
    service_cidrs: tuple[str, ...] = ()
    dns_domain: str = ""
    balanced: bool = False  # somebody else holds the address
    password: str = ""  # by which controllers know each other


def render_config(given: Mapping[str, Any] | None, facts: ClusterFacts, *, single: bool = False) -> Json:
    """`given`: the user's ClusterConfig. What the user wrote wins, but for the address of the Cluster."""
    config: Json = copy.deepcopy(dict(given or {}))
    config["apiVersion"], config["kind"] = API_VERSION, KIND
    config["metadata"] = {"name": "k0s", **(config.get("metadata") or {})}
    spec = config["spec"] = dict(config.get("spec") or {})
    network = spec["network"] = dict(spec.get("network") or {})
    for name, value in (
        ("podCIDR", ",".join(facts.pod_cidrs[:1])),
        ("serviceCIDR", ",".join(facts.service_cidrs[:1])),
        ("clusterDomain", facts.dns_domain),
    ):
        if value:
            network.setdefault(name, value)
    spec["api"] = _api(spec.get("api") or {}, network, facts)
    if holds_address(network, facts, single=single):
        network["controlPlaneLoadBalancing"] = _load_balancing(facts)
    return config


def holds_address(network: Mapping[str, Any], facts: ClusterFacts, *, single: bool = False) -> bool:
    """Whether k0s itself brings the Cluster's address to one of the controllers."""
    if facts.balanced or single or network.get("controlPlaneLoadBalancing") is not None:
        return False
    return is_address(facts.host)


def vrrp_password(key: bytes) -> str:
    """The same on all controllers of a cluster, and known to those alone who have the key of its authority."""
    return hashlib.sha256(b"vrrp:" + key).hexdigest()[:_PASSWORD_SIZE]


def _api(given: Mapping[str, Any], network: Mapping[str, Any], facts: ClusterFacts) -> Json:
    sans = [str(each) for each in given.get("sans") or ()]
    made: Json = {**given, "sans": list(dict.fromkeys([*sans, facts.host]))}
    made.setdefault("port", facts.port)
    # With a load balancer on each node, k0s allows no other way to the control plane.
    if not (network.get("nodeLocalLoadBalancing") or {}).get("enabled"):
        made["externalAddress"] = facts.host
    return made


def _load_balancing(facts: ClusterFacts) -> Json:
    bits = 128 if ":" in facts.host else 32
    instance = {"virtualIPs": [f"{facts.host}/{bits}"], "authPass": facts.password}
    return {"enabled": True, "type": "Keepalived", "keepalived": {"vrrpInstances": [instance]}}
