"""The k0s.yaml of a controller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from homeport.bootstrap.k0s.clusterconfig import ClusterFacts, render_config, vrrp_password
from homeport.capi.k0s.clusterconfig import problems, schema
from homeport.machinery import yaml

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
FACTS = ClusterFacts("10.0.0.100", 6443, ("192.168.0.0/16",), ("10.96.0.0/12",), "cluster.local", password="abcdefgh")


def test_address_networks_and_load_balancing_of_the_cluster_are_filled_in() -> None:
    assert render_config(None, FACTS) == {
        "apiVersion": "k0s.k0sproject.io/v1beta1",
        "kind": "ClusterConfig",
        "metadata": {"name": "k0s"},
        "spec": {
            "api": {"externalAddress": "10.0.0.100", "port": 6443, "sans": ["10.0.0.100"]},
            "network": {
                "podCIDR": "192.168.0.0/16",
                "serviceCIDR": "10.96.0.0/12",
                "clusterDomain": "cluster.local",
                "controlPlaneLoadBalancing": {
                    "enabled": True,
                    "type": "Keepalived",
                    "keepalived": {
                        "vrrpInstances": [{"virtualIPs": ["10.0.0.100/32"], "authPass": "abcdefgh"}],
                    },
                },
            },
        },
    }


def test_what_the_user_wrote_stays() -> None:
    given: dict[str, Any] = {
        "metadata": {"name": "mine"},
        "spec": {
            "api": {"sans": ["api.example"], "extraArgs": {"anonymous-auth": "true"}},
            "network": {"provider": "calico", "podCIDR": "10.1.0.0/16"},
            "extensions": {"helm": {"charts": [{"name": "a"}]}},
        },
    }
    made = render_config(given, FACTS)
    assert made["metadata"] == {"name": "mine"}
    assert made["spec"]["api"]["sans"] == ["api.example", "10.0.0.100"]
    assert made["spec"]["api"]["extraArgs"] == {"anonymous-auth": "true"}
    assert made["spec"]["network"]["podCIDR"] == "10.1.0.0/16"
    assert made["spec"]["network"]["provider"] == "calico"
    assert made["spec"]["extensions"] == {"helm": {"charts": [{"name": "a"}]}}
    assert given["spec"]["api"] == {"sans": ["api.example"], "extraArgs": {"anonymous-auth": "true"}}


@pytest.mark.parametrize(
    ("facts", "given", "single"),
    [
        (ClusterFacts("api.example", 6443), None, False),
        (ClusterFacts("10.0.0.100", 6443, balanced=True), None, False),
        (FACTS, {"spec": {"network": {"controlPlaneLoadBalancing": {"enabled": False}}}}, False),
        (FACTS, None, True),
    ],
    ids=["a host name", "a load balancer", "switched off", "single"],
)
def test_an_address_that_something_else_holds_is_left_to_it(facts: ClusterFacts, given: Any, single: bool) -> None:
    network = render_config(given, facts, single=single)["spec"]["network"]
    assert not (network.get("controlPlaneLoadBalancing") or {}).get("enabled")


def test_with_a_load_balancer_on_each_node_there_is_no_external_address() -> None:
    made = render_config({"spec": {"network": {"nodeLocalLoadBalancing": {"enabled": True}}}}, FACTS)
    assert "externalAddress" not in made["spec"]["api"]
    assert made["spec"]["api"]["sans"] == ["10.0.0.100"]


def test_an_ipv6_address_is_a_network_of_one() -> None:
    made = render_config(None, ClusterFacts("fd00::1", 6443))
    keepalived = made["spec"]["network"]["controlPlaneLoadBalancing"]["keepalived"]
    assert keepalived["vrrpInstances"][0]["virtualIPs"] == ["fd00::1/128"]


def test_the_password_of_controllers_follows_from_the_key_of_their_cluster() -> None:
    assert vrrp_password(b"a") == vrrp_password(b"a") != vrrp_password(b"b")
    assert len(vrrp_password(b"a")) == 8


def test_k0s_accepts_what_is_generated() -> None:
    assert list(problems(render_config(None, FACTS)["spec"])) == []


def facts_of(part: dict[str, Any]) -> dict[str, Any]:
    """What clusterconfig.json has of a schema."""
    made: dict[str, Any] = {name: part[name] for name in ("type", "enum", "minimum", "maximum") if name in part}
    if part.get("x-kubernetes-int-or-string"):
        made = {"type": ["integer", "string"]}
    if "properties" in part:
        made["properties"] = {name: facts_of(each) for name, each in part["properties"].items()}
    if "items" in part:
        made["items"] = facts_of(part["items"])
    if isinstance(part.get("additionalProperties"), dict):
        made["additionalProperties"] = facts_of(part["additionalProperties"])
    return made


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
def test_the_known_fields_are_those_of_k0s() -> None:
    [path] = Path(REFERENCE).rglob("k0s/k0s.k0sproject.io_clusterconfigs.yaml")
    found = yaml.load(path.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema() == facts_of(found["properties"]["spec"])
