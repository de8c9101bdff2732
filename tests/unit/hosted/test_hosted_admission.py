"""What the kinds of Steward and Kamaji may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.hosted.admission import (
    default_control_plane,
    validate_control_plane,
    validate_datastore,
    validate_template,
    validate_tenant,
)


def tenant(name: str = "demo", version: str = "v1.33.1", **spec: Any) -> dict[str, Any]:
    kubernetes = {"version": version, **spec.pop("kubernetes", {})}
    return {"metadata": {"name": name}, "spec": {"kubernetes": kubernetes, **spec}}


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (tenant("1demo"), "metadata.name"),
        (tenant("a.b"), "metadata.name"),
        (tenant(version="v1.33"), "spec.kubernetes.version"),
        (tenant(version="v1.20.0"), "spec.kubernetes.version"),
        (tenant(kubernetes={"admissionControllers": ["PodSecurityPolicy"]}), "spec.kubernetes.admissionControllers[0]"),
        (tenant(networkProfile={"serviceCidr": "10.96.0.0"}), "spec.networkProfile.serviceCidr"),
        (tenant(networkProfile={"serviceCidr": "10.96.0.0/16", "dnsServiceIPs": ["10.97.0.1"]}), "spec.networkProfile.dnsServiceIPs[0]"),
        (tenant(networkProfile={"certSANs": ["not a host"]}), "spec.networkProfile.certSANs[0]"),
        (tenant(networkProfile={"loadBalancerSourceRanges": ["x"]}), "spec.networkProfile.loadBalancerSourceRanges[0]"),
        (tenant(networkProfile={"port": 70000}), "spec.networkProfile.port"),
        (tenant(networkProfile={"port": 10257}), "spec.networkProfile.port"),
        (tenant(addons={"konnectivity": {"server": {"port": 6443}}}), "spec.addons.konnectivity.server.port"),
        (tenant(addons={"konnectivity": {"server": {"port": 8134}}}), "spec.addons.konnectivity.server.port"),
        (tenant(addons={"konnectivity": {}}, networkProfile={"port": 8132}), "spec.addons.konnectivity.server.port"),
        (tenant(controlPlane={"service": {"additionalPorts": [{"name": "a", "port": 6443}]}}), "spec.controlPlane.service.additionalPorts[0].port"),
        (tenant(controlPlane={"service": {"additionalPorts": [{"name": "kube-apiserver", "port": 1}]}}), "spec.controlPlane.service.additionalPorts[0].name"),
        (tenant(dataStoreSchema="a/b"), "spec.dataStoreSchema"),
        (tenant(dataStoreUsername="root"), "spec.dataStoreUsername"),
        (tenant(dataStoreOverrides=[{"resource": "events", "dataStore": "x"}]), "spec.dataStoreOverrides[0].resource"),
        (tenant(addons={"workerBootstrap": {"provider": "flatcar"}}), "spec.addons.workerBootstrap.provider"),
        (tenant(controlPlane={"gateway": {"parentRefs": [{"port": 1}]}}), "spec.controlPlane.gateway.parentRefs[0].port"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_at_its_field(obj: dict[str, Any], path: str) -> None:
    assert [each.field for each in validate_tenant(obj, None)] == [path]


def test_an_override_is_named_once() -> None:
    twice = [{"resource": "/events", "dataStore": "a"}, {"resource": "/events", "dataStore": "b"}]
    (cause,) = validate_tenant(tenant(dataStoreOverrides=twice), None)
    assert cause.reason == "FieldValueDuplicate"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("v1.33.1", "v1.34.0", ""),
        ("v1.33.1", "v1.33.2", ""),
        ("v1.33.1", "v1.33.0", "downgrade"),
        ("v1.33.1", "v1.32.9", "downgrade"),
        ("v1.33.1", "v1.35.0", "skips a minor version"),
    ],
)
def test_a_version_goes_up_one_minor_version_at_a_time(old: str, new: str, why: str) -> None:
    causes = validate_tenant(tenant(version=new), tenant(version=old))
    causes += validate_control_plane({"spec": {"version": new}}, {"spec": {"version": old}})
    assert len(causes) == (2 if why else 0)
    assert all(why in each.message for each in causes)


def test_an_object_that_did_not_change_is_not_judged_again() -> None:
    old = tenant("UPPER", version="broken")
    assert validate_tenant(old, old) == []


def test_a_version_without_v_gets_one() -> None:
    obj = {"spec": {"version": "1.33.1"}}
    default_control_plane(obj, None)
    assert obj["spec"]["version"] == "v1.33.1"


def test_a_template_in_use_is_not_changed() -> None:
    old = {"metadata": {}, "spec": {"template": {"spec": {"registry": "a"}}}}
    new = {"metadata": {}, "spec": {"template": {"spec": {"registry": "b"}}}}
    assert [each.field for each in validate_template(new, old)] == ["spec.template.spec"]
    assert validate_template(old, old) == []


def test_an_endpoint_of_a_datastore_has_a_port() -> None:
    causes = validate_datastore({"spec": {"endpoints": ["10.0.0.1:2379", "10.0.0.2"]}}, None)
    assert [each.field for each in causes] == ["spec.endpoints[1]"]
