"""Ingress, IngressRouteTCP and TLSRoute of a control plane."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.steward.controlplane import StewardControlPlane
from homeport.api.steward.v1alpha1 import TenantControlPlaneSpec
from homeport.hosted.admission import warn_control_plane, warn_template, warn_tenant
from homeport.hosted.clusterapi.tenant import route_endpoint
from homeport.hosted.tenant.podinputs import PodInputs
from homeport.hosted.tenant.route import render_routes, route_host
from homeport.hosted.tenant.storage import Storage


def inputs(**control_plane: Any) -> PodInputs:
    addons = {"konnectivity": {"server": {"port": 8132}}} if control_plane.pop("konnectivity", False) else {}
    body = {"controlPlane": {"service": {"serviceType": "ClusterIP"}, **control_plane}, "addons": addons}
    spec = msgspec.convert(body, TenantControlPlaneSpec)
    return PodInputs("g.dev", "ns", "demo", spec, Storage("", "etcd", (), "", ""), "")


@pytest.mark.parametrize(
    ("type_", "annotation"),
    [
        ("haproxy", "haproxy.org/ssl-passthrough"),
        ("nginx", "nginx.ingress.kubernetes.io/ssl-passthrough"),
        ("generic", None),
    ],
)
def test_an_ingress_passes_tls_through(type_: str, annotation: str | None) -> None:
    extra = {"annotations": {"mine": "yes"}, "labels": {"team": "a"}}
    ingress = {"hostname": "k.example", "controllerType": type_, "ingressClassName": "c", "additionalMetadata": extra}
    (made,) = render_routes(inputs(ingress=ingress))
    body = made.body
    assert (body["kind"], body["spec"]["ingressClassName"]) == ("Ingress", "c")
    assert body["metadata"]["annotations"]["mine"] == "yes"
    assert body["metadata"]["labels"]["team"] == "a"
    assert annotation is None or body["metadata"]["annotations"][annotation] == "true"
    (rule,) = body["spec"]["rules"]
    assert rule["host"] == "k.example"
    assert rule["http"]["paths"][0]["backend"] == {"service": {"name": "demo", "port": {"number": 6443}}}


def test_traefik_gets_a_route_of_its_own_kind() -> None:
    (made,) = render_routes(inputs(ingress={"hostname": "k.example:443", "controllerType": "traefik"}))
    assert made.kind.api_version == "traefik.io/v1alpha1"
    assert made.body["spec"]["routes"][0]["match"] == "HostSNI(`k.example`)"
    assert made.body["spec"]["tls"] == {"passthrough": True}


def test_a_gateway_gets_routes_for_the_api_server_and_for_konnectivity() -> None:
    gateway = {"hostname": "k.example", "parentRefs": [{"name": "gw", "namespace": "infra"}]}
    api, tunnel = render_routes(inputs(gateway=gateway, konnectivity=True))
    assert api.body["spec"] == {
        "parentRefs": [{"name": "gw", "namespace": "infra", "sectionName": "kube-apiserver", "port": 6443}],
        "hostnames": ["k.example"],
        "rules": [{"backendRefs": [{"name": "demo", "port": 6443}]}],
    }
    assert (tunnel.name, tunnel.body["spec"]["parentRefs"][0]["sectionName"]) == (
        "demo-konnectivity",
        "konnectivity-server",
    )


def test_a_host_without_a_name_is_called_after_the_control_plane() -> None:
    assert route_host(inputs(ingress={})) == "demo.ns.cluster.local"
    assert route_host(inputs()) == ""
    assert render_routes(inputs()) == []


@pytest.mark.parametrize(
    ("network", "endpoint"),
    [
        ({"ingress": {"hostname": "k.example"}}, "k.example:443"),
        ({"ingress": {"hostname": "k.example:8443"}}, "k.example:8443"),
        ({"gateway": {"hostname": "k.example"}}, "k.example:6443"),
        ({}, "None"),
    ],
)
def test_a_cluster_finds_its_control_plane_by_the_host_name(network: dict[str, Any], endpoint: str) -> None:
    plane = msgspec.convert({"spec": {"network": network}}, StewardControlPlane)
    assert str(route_endpoint(plane)) == endpoint


def test_fields_that_are_only_stored_are_warned_about_once() -> None:
    obj = {"spec": {"addons": {"tcpProxy": {}, "workerBootstrap": {"provider": "talos", "talos": {}}}}}
    assert [each.partition(":")[0] for each in warn_tenant(obj, None)] == [
        "spec.addons.tcpProxy",
        "spec.addons.workerBootstrap.talos",
    ]
    assert warn_tenant(obj, obj) == []
    plane = {"spec": {"deployment": {"externalClusterReference": {"deploymentNamespace": "x"}}}}
    assert warn_control_plane(plane, None)[0].startswith("spec.deployment.externalClusterReference: stored, and not")
    template = {"spec": {"template": plane}}
    assert warn_template(template, None)[0].startswith("spec.template.spec.deployment.externalClusterReference")


def test_another_endpoint_is_warned_about_when_nodes_may_use_the_old_one() -> None:
    old = {"spec": {"networkProfile": {"port": 6443}}, "status": {"controlPlaneEndpoint": "10.0.0.1:6443"}}
    new = {"spec": {"networkProfile": {"port": 7443}}}
    assert warn_tenant(new, old) == [
        "spec.networkProfile.port: nodes that have joined keep the endpoint that they know"
    ]
    assert warn_tenant(old, old) == []
