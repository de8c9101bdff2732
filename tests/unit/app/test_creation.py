"""Manifests from choices, for the three APIs."""

from __future__ import annotations

from homeport.app.creation.check import wrong
from homeport.app.creation.choice import Choice
from homeport.app.creation.render import render
from homeport.app.discovery.source import supports
from homeport.capi.platform import Entity

NETWORK = Entity("network", "1", "vm-network", "pe-1", details={"cidr": "10.0.0.0/24"})
IMAGE = Entity("image", "2", "ubuntu-kube-v1.30.0", details={"kubernetes": "v1.30.0"})


def test_each_api_names_what_it_needs() -> None:
    assert Choice(api="tenant", name="a", namespace="b").missing() == ["--provider-config"]
    assert Choice(api="deployment", name="a", namespace="b", provider="harvester").missing() == [
        "--credential",
        "--image",
        "--network",
        "--endpoint",
    ]
    assert "--place" in Choice(api="cluster-api", name="a", namespace="b").missing()


def test_a_tenant_cluster_names_its_provider_config_and_sizes() -> None:
    choice = Choice(api="tenant", name="shop", namespace="team", provider_config="butler-system/site", workers=3)
    [made] = render(choice, supports()["nutanix"], {})
    assert made["kind"] == "TenantCluster"
    assert made["spec"]["providerConfigRef"] == {"name": "site", "namespace": "butler-system"}
    assert made["spec"]["workers"]["replicas"] == 3


def test_a_deployment_on_harvester_has_the_values_of_its_template() -> None:
    choice = Choice(
        api="deployment",
        name="shop",
        namespace="kcm-system",
        provider="harvester",
        credential="site",
        image="default/ubuntu",
        network="default/workloads",
        endpoint="10.40.0.200",
    )
    [made] = render(choice, supports()["harvester"], {})
    assert made["spec"]["template"] == "harvester-k0s-hcp"
    assert made["spec"]["config"]["machineDefaults"] == {
        "image": "default/ubuntu",
        "networks": ["default/workloads"],
        "cpuCores": 2,
        "memorySize": "4Gi",
        "systemDiskSize": "40Gi",
    }


def test_options_that_an_api_would_ignore_are_refused() -> None:
    tenant = Choice(api="tenant", name="shop", namespace="team", network="vlan")
    assert tenant.unused(["workers", "network"]) == [
        "--network has no effect with --api tenant: the ProviderConfig names it"
    ]
    assert Choice(api="cluster-api", name="a", namespace="b").unused(["secret", "image"]) == []
    assert Choice(api="deployment", name="a", namespace="b").unused(["cpu", "cni"]) == [
        "--cni has no effect with --api deployment: the template brings its own"
    ]


def test_an_endpoint_outside_the_network_and_a_version_that_the_image_does_not_hold_are_wrong() -> None:
    choice = Choice(
        api="cluster-api",
        name="a",
        namespace="b",
        network="vm-network",
        image="ubuntu-kube-v1.30.0",
        version="v1.31.0",
        endpoint="10.0.9.1",
    )
    assert wrong(choice, [NETWORK, IMAGE]) == [
        "--endpoint 10.0.9.1: outside of network vm-network (10.0.0.0/24)",
        "--version v1.31.0: image ubuntu-kube-v1.30.0 contains Kubernetes v1.30.0",
    ]


def test_something_else_than_a_version_is_wrong() -> None:
    [said] = wrong(Choice(api="cluster-api", name="a", namespace="b", version="latest"), [])
    assert said == "--version latest: not a Kubernetes version; expected for example v1.33.4"


def test_sizes_that_are_no_quantities_are_refused() -> None:
    for text in ("4 gigs", "", "-1Gi", "0"):
        choice = Choice(api="tenant", name="shop", namespace="team", memory=text)
        assert wrong(choice, ()) == [f"--memory {text}: not a quantity; expected for example 4Gi"]
