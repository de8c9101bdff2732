"""Reading Butler's objects: both spellings give one model, contradictions and wrong values are named with their field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from homeport.api.butler import v1alpha1 as api
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.platforms.butler.normal.addon import normal_addon_definition, normal_tenant_addon
from homeport.platforms.butler.normal.bootstrap import BootstrapModel, normal_cluster_bootstrap
from homeport.platforms.butler.normal.config import normal_butler_config
from homeport.platforms.butler.normal.image import normal_image_sync
from homeport.platforms.butler.normal.lookup import choose_provider, find_provider
from homeport.platforms.butler.normal.machine import normal_machine_request
from homeport.platforms.butler.normal.network import normal_ip_allocation, normal_network_pool
from homeport.platforms.butler.normal.outcome import Normal
from homeport.platforms.butler.normal.policy import normal_cluster_creation_policy, refusal, rule_for
from homeport.platforms.butler.normal.provider import SecretAt, normal_provider_config
from homeport.platforms.butler.normal.team import TeamModel, normal_team
from homeport.platforms.butler.normal.tenant import Defaults, TenantModel, name_faults, normal_tenant_cluster
from homeport.platforms.butler.normal.user import normal_identity_provider, normal_user

T = TypeVar("T")


def read(kind: type[T], spec: dict[str, Any], name: str = "a", namespace: str = "default", **meta: Any) -> T:
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace, **meta}, "spec": spec}, kind)


def good(found: Normal[T]) -> T:
    assert found.faults == ()
    assert found.model is not None
    return found.model


def fields(found: Normal[Any]) -> list[str]:
    assert found.model is None
    return [each.field for each in found.faults]


# -- ProviderConfig ------------------------------------------------------------------------------------------------

PART = {"clusterUUID": "c", "subnetUUID": "s", "endpoint": "https://prism.example.com"}


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "nutanix", "nutanix": {**PART, "credentialsRef": {"name": "creds"}}},
        {"provider": "nutanix", "credentialsRef": {"name": "creds"}, "nutanix": PART},
        {"provider": "nutanix", "type": "nutanix", "credentialsRef": {"name": "creds"}, "nutanix": PART},
        {
            "provider": "nutanix",
            "credentialsRef": {"name": "creds", "namespace": "default"},
            "nutanix": {**PART, "credentialsRef": {"name": "creds"}},
        },
    ],
)
def test_a_provider_config_is_the_same_in_either_spelling(spec: dict[str, Any]) -> None:
    model = good(normal_provider_config(read(api.ProviderConfig, spec)))
    assert model.type == "nutanix"
    assert model.credentials == SecretAt("default", "creds")
    assert {**model.part, "credentialsRef": None} == {**PART, "credentialsRef": None}


@pytest.mark.parametrize(
    ("spec", "wrong", "words"),
    [
        ({}, ["spec.provider"], "set the type of the provider"),
        (
            {"type": "nutanix", "provider": "harvester", "harvester": {"credentialsRef": {"name": "k"}}},
            ["spec.type"],
            '"nutanix" contradicts spec.provider ("harvester")',
        ),
        (
            {"type": "nutanix", "harvester": {"credentialsRef": {"name": "k"}}},
            ["spec.nutanix", "spec.nutanix.credentialsRef"],
            "only spec.harvester is set",
        ),
        (
            {"type": "nutanix", "credentialsRef": {"name": "a"}, "nutanix": {"credentialsRef": {"name": "b"}}},
            ["spec.nutanix.credentialsRef"],
            "contradicts spec.credentialsRef",
        ),
        ({"type": "aws", "scope": {"type": "team"}}, ["spec.scope.teamRef"], "names the team"),
        ({"type": "aws", "network": {"mode": "ipam"}}, ["spec.network.poolRefs"], "name at least one"),
        (
            {"type": "aws", "network": {"subnet": "10.0.0.0/24", "gateway": "10.0.1.1"}},
            ["spec.network.gateway"],
            "outside spec.network.subnet",
        ),
    ],
)
def test_what_is_wrong_with_a_provider_config_is_named(spec: dict[str, Any], wrong: list[str], words: str) -> None:
    found = normal_provider_config(read(api.ProviderConfig, spec))
    assert fields(found) == wrong
    assert words in found.text


# -- look-up -------------------------------------------------------------------------------------------------------


def config(name: str, namespace: str, team: str = "") -> api.ProviderConfig:
    scope = {"scope": {"type": "team", "teamRef": {"name": team}}} if team else {}
    return read(api.ProviderConfig, {"type": "harvester", **scope}, name, namespace)


@pytest.mark.parametrize(
    ("ref", "there", "expected"),
    [
        ({"name": "p", "namespace": "b"}, ["a", "b", "butler-system"], "b"),
        ({"name": "p"}, ["a", "b", "butler-system"], "a"),
        ({"name": "p"}, ["b", "butler-system"], "butler-system"),
        ({"name": "p"}, ["b"], "b"),
        ({"name": "p", "namespace": "a"}, ["b"], None),
        ({"name": "p"}, ["b", "c"], None),
        ({"name": "q"}, ["a"], None),
    ],
)
def test_a_reference_looks_in_its_namespace_then_here_then_in_butler_system_then_for_the_only_one(
    ref: dict[str, str], there: list[str], expected: str | None
) -> None:
    found = find_provider(ProviderRef(**ref), "a", [config("p", each) for each in there])
    assert (found.config.metadata.namespace if found.config else None) == expected
    assert bool(found.message) == (expected is None)


def test_a_reference_that_leads_nowhere_names_what_there_is() -> None:
    found = find_provider(ProviderRef(name="nutanix-prd"), "a", [config("nutanix-prod", "a")])
    assert "did you mean 'nutanix-prod'" in found.message
    several = find_provider(ProviderRef(name="p"), "a", [config("p", "b"), config("p", "c")])
    assert "several namespaces (b, c)" in several.message


def test_the_provider_of_object_then_team_then_platform_then_the_only_one() -> None:
    all_ = [config("p", "butler-system"), config("q", "butler-system"), config("t", "butler-system", team="x")]
    p, q = ProviderRef(name="p"), ProviderRef(name="q")

    def chosen(*refs: tuple[str, ProviderRef | None], among: list[api.ProviderConfig] = all_) -> str:
        found = choose_provider("a", among, *refs)
        return found.config.metadata.name if found.config else found.message

    assert chosen(("object", p), ("team", q)) == "p"
    assert chosen(("object", None), ("team", q), ("ButlerConfig", p)) == "q"
    assert "there are several ProviderConfigs (butler-system/p, butler-system/q)" in chosen(("object", None))
    assert chosen(among=[all_[0], all_[2]]) == "p"
    assert chosen(among=[config("default", "butler-system"), *all_]) == "default"
    assert "no ProviderConfig exists" in chosen(among=[])
    # A reference that leads nowhere is an error, and not a reason to take another provider.
    assert "not found" in chosen(("object", ProviderRef(name="z")), ("team", q))


# -- TenantCluster -------------------------------------------------------------------------------------------------


def tenant(spec: dict[str, Any], defaults: Defaults | None = None, **labels: str) -> Normal[TenantModel]:
    named = {f"butler.butlerlabs.dev/{key}": value for key, value in labels.items()}
    return normal_tenant_cluster(read(api.TenantCluster, spec, labels=named), defaults or Defaults())


def test_two_lines_are_a_whole_cluster() -> None:
    model = good(tenant({"providerConfigRef": {"name": "harvester-prod"}}))
    (pool,) = model.pools
    assert (pool.name, pool.replicas, pool.cpu, pool.memory_mib, pool.disk_gib) == ("workers", 1, 4, 8192, 40)
    assert pool.os.type == "rocky"
    assert (model.version, model.pod_cidr, model.service_cidr) == ("v1.34.2", "10.244.0.0/16", "10.96.0.0/12")
    assert model.hosted
    assert [each.provider for each in model.addons] == ["cilium"]
    assert {each.source for each in model.effective} == {"built-in"}


@pytest.mark.parametrize(
    "disk", [{"disk": "100Gi"}, {"diskSize": "100Gi"}, {"disk": "100Gi", "diskSize": 107374182400}]
)
def test_the_disk_has_two_spellings(disk: dict[str, Any]) -> None:
    model = good(tenant({"workers": {"replicas": 3, "machineTemplate": {"cpu": 8, "memory": "16Gi", **disk}}}))
    assert (model.pools[0].disk_gib, model.pools[0].memory_mib, model.nodes) == (100, 16384, 3)


def team_of(spec: dict[str, Any]) -> TeamModel:
    return good(normal_team(read(api.Team, spec, "harbour", "")))


def test_each_value_comes_from_the_most_specific_level_that_has_it() -> None:
    platform = good(
        normal_butler_config(
            read(
                api.ButlerConfig,
                {
                    "clusterDefaults": {"kubernetesVersion": "v1.31.0", "workerCount": 9, "workerMemoryGi": 9},
                    "defaultAddonVersions": {"cilium": "1.17.0", "metallb": "0.15.2"},
                },
                "butler",
            )
        )
    )
    team = team_of(
        {
            "clusterDefaults": {"kubernetesVersion": "v1.32.0", "workerCount": 3},
            "environments": [{"name": "prod", "clusterDefaults": {"kubernetesVersion": "v1.33.0"}}],
        }
    )
    found = tenant({"workers": {"machineTemplate": {"cpu": 2}}}, Defaults(platform, team), environment="prod")
    model = good(found)
    sources = {each.field: (each.value, each.source) for each in model.effective}
    assert sources["spec.workers.machineTemplate.cpu"] == ("2", "object")
    assert sources["spec.kubernetesVersion"] == ("v1.33.0", "environment")
    assert sources["spec.workers.replicas"] == ("3", "team")
    assert sources["spec.workers.machineTemplate.memory"] == ("9Gi", "ButlerConfig")
    assert sources["spec.workers.machineTemplate.diskSize"] == ("40Gi", "built-in")
    assert sources["spec.addons.cni.version"] == ("1.17.0", "ButlerConfig")
    assert model.balancer.version == "0.15.2"
    assert (model.version, model.nodes, model.environment) == ("v1.33.0", 3, "prod")


@pytest.mark.parametrize(
    "spec",
    [
        {"networking": {"loadBalancerPool": {"start": "10.40.1.0", "end": "10.40.1.63"}}},
        {"addons": {"loadBalancer": {"addressPool": "10.40.1.0-10.40.1.63"}}},
        {"platform": {"metalLBPool": "10.40.1.0/26"}},
        {"platform": {"metalLBPool": "10.40.1.0/26"}, "addons": {"loadBalancer": {"addressPool": "10.40.1.0/26"}}},
    ],
)
def test_a_pool_of_load_balancers_has_three_spellings(spec: dict[str, Any]) -> None:
    assert str(good(tenant(spec)).load_balancer) == "10.40.1.0-10.40.1.63"


@pytest.mark.parametrize(
    ("spec", "wrong", "words"),
    [
        (
            {"workers": {"machineTemplate": {"disk": "100Gi", "diskSize": "50Gi"}}},
            ["spec.workers.machineTemplate.disk"],
            '"100Gi" contradicts spec.workers.machineTemplate.diskSize ("50Gi")',
        ),
        (
            {"workers": {"machineTemplate": {"memory": 16}}},
            ["spec.workers.machineTemplate.memory"],
            "16 is below the minimum of 1Gi: did you mean 16Gi?",
        ),
        ({"kubernetesVersion": "v1.20.0"}, ["spec.kubernetesVersion"], "the oldest version that is supported"),
        (
            {"networking": {"podCIDR": "10.96.0.0/16"}},
            ["spec.networking.serviceCIDR"],
            "overlaps spec.networking.podCIDR",
        ),
        ({"networking": {"podCIDR": "10.244.0.1/16"}}, ["spec.networking.podCIDR"], "not a network in CIDR notation"),
        (
            {"platform": {"metalLBPool": "10.244.1.0-10.244.1.9"}},
            ["spec.platform.metalLBPool"],
            "overlaps spec.networking.podCIDR",
        ),
        ({"platform": {"metalLBPool": "10.0.0.9-10.0.0.1"}}, ["spec.platform.metalLBPool"], "ends before it begins"),
        (
            {"platform": {"metalLBPool": "10.0.0.1"}, "addons": {"loadBalancer": {"addressPool": "10.0.0.2"}}},
            ["spec.platform.metalLBPool"],
            "contradicts spec.addons.loadBalancer.addressPool",
        ),
        ({"workerPools": [{"name": "workers"}]}, ["spec.workerPools[workers]"], "choose another name"),
        ({"workers": {"replicas": 2000000000}}, ["spec.workers.replicas"], "above the maximum of 1000 workers in one"),
        (
            {"workerPools": [{"name": f"p{i}", "replicas": 1000} for i in range(5)]},
            ["spec.workerPools"],
            "5001 is above the maximum of 5000 workers",
        ),
        (
            {"workers": {"machineTemplate": {"cpu": 4096}}},
            ["spec.workers.machineTemplate.cpu"],
            "4096 is above the maximum of 512 CPUs of a machine",
        ),
        (
            {"workers": {"machineTemplate": {"memory": "8Ei", "disk": "65Ti"}}},
            ["spec.workers.machineTemplate.memory", "spec.workers.machineTemplate.disk"],
            "8Ei is above the maximum of 16Ti",
        ),
        (
            {"workerPools": [{"name": "p" * 62}]},
            [f"spec.workerPools[{'p' * 62}].name"],
            "at most 61 are possible in cluster a",
        ),
        (
            {"networking": {"podCIDR": "10.244.0.0/30", "serviceCIDR": "10.96.0.0/30"}},
            ["spec.networking.podCIDR", "spec.networking.serviceCIDR"],
            "10.244.0.0-10.244.0.3 is too small: each Node gets 256 addresses of it",
        ),
        ({"networking": {"podCIDR": "fd00::/48"}}, ["spec.networking.serviceCIDR"], "podCIDR is IPv6: set both"),
        (
            {"workerPools": [{"name": "g", "labels": {"a b": "c"}, "taints": [{"key": "d", "effect": "No"}]}]},
            ["spec.workerPools[g].labels", "spec.workerPools[g].taints"],
            '"No" is not an effect: use NoSchedule',
        ),
    ],
)
def test_what_is_wrong_with_a_tenant_cluster_is_named(spec: dict[str, Any], wrong: list[str], words: str) -> None:
    found = tenant(spec)
    assert fields(found) == wrong
    assert words in found.text


def test_sizes_of_machine_requests_and_bootstraps_have_a_maximum_too() -> None:
    named = {"providerRef": {"name": "p"}, "machineName": "m", "role": "worker"}
    sizes = {"memoryMB": 2**40, "extraDisks": [{"sizeGB": 10}, {"sizeGB": 70000}]}
    request = normal_machine_request(read(api.MachineRequest, {**named, **sizes}))
    assert fields(request) == ["spec.memoryMB", "spec.extraDisks[1].sizeGB"]
    cluster = {"topology": "single-node", "controlPlane": {"machineTemplate": {"diskSize": "1Ei"}}}
    bootstrap = normal_cluster_bootstrap(read(api.ClusterBootstrap, {"providerRef": {"name": "p"}, "cluster": cluster}))
    assert fields(bootstrap) == ["spec.cluster.controlPlane.machineTemplate.disk"]


def test_a_default_that_is_too_large_is_named_with_its_level() -> None:
    config = good(normal_butler_config(read(api.ButlerConfig, {"clusterDefaults": {"workerCount": 5000}}, "butler")))
    assert fields(tenant({}, Defaults(config))) == ["spec.workers.replicas (default of the ButlerConfig)"]


@pytest.mark.parametrize(
    ("name", "words"),
    [("a" * 51, "has 51 characters; at most 50"), ("shop.prod", "no dots"), ("2nd", "a letter first")],
)
def test_names_that_nothing_can_be_made_from_are_refused(name: str, words: str) -> None:
    (fault,) = name_faults(name)
    assert fault.field == "metadata.name"
    assert words in fault.message


def test_a_name_with_fifty_characters_is_possible() -> None:
    assert name_faults("a" * 50) == []


def test_an_unknown_environment_names_those_of_the_team() -> None:
    found = tenant({}, Defaults(team=team_of({"environments": [{"name": "prod"}]})), environment="prd")
    assert "team harbour has no such environment; it has prod" in found.text


def test_addons_are_those_that_the_object_names_and_does_not_disable() -> None:
    addons = {
        "ingress": {},
        "storage": {"enabled": False},
        "certManager": {"version": "v1.16.2"},
        "loadBalancer": {"values": {"speaker": {"frr": {"enabled": False}}}},
    }
    model = good(tenant({"addons": addons}))
    assert [(each.role, each.provider) for each in model.addons] == [
        ("cni", "cilium"),
        ("loadBalancer", "metallb"),
        ("certManager", "cert-manager"),
        ("ingress", "traefik"),
    ]
    assert model.addons[1].values == {"speaker": {"frr": {"enabled": False}}}
    assert model.addons[2].version == "v1.16.2"


def test_default_addons_come_from_the_most_specific_level_and_are_no_network_plugins() -> None:
    spec = {"clusterDefaults": {"defaultAddons": ["flux", "longhorn"]}}
    config = good(normal_butler_config(read(api.ButlerConfig, spec, "butler")))
    model = good(tenant({}, Defaults(config, team_of({"clusterDefaults": {"defaultAddons": ["traefik"]}}))))
    assert (model.extra_addons, model.extra_source) == (("traefik",), "team")
    model = good(tenant({}, Defaults(config)))
    assert (model.extra_addons, model.extra_source) == (("flux", "longhorn"), "ButlerConfig")
    assert ("spec.addons", "flux, longhorn", "ButlerConfig") in {
        (each.field, each.value, each.source) for each in model.effective
    }
    wrong = normal_butler_config(read(api.ButlerConfig, {"clusterDefaults": {"defaultAddons": ["calico"]}}, "butler"))
    assert fields(wrong) == ["spec.clusterDefaults.defaultAddons"]


def test_further_pools_have_sizes_labels_and_taints_of_their_own() -> None:
    pool = {
        "name": "big",
        "replicas": 2,
        "machineTemplate": {"cpu": 16},
        "labels": {"size": "big"},
        "taints": [{"key": "big", "effect": "NoSchedule"}],
    }
    model = good(tenant({"workerPools": [pool]}))
    assert [(each.name, each.replicas, each.cpu, each.memory_mib) for each in model.pools] == [
        ("workers", 1, 4, 8192),
        ("big", 2, 16, 8192),
    ]
    assert model.pools[1].labels == {"size": "big"}
    assert model.pools[1].taints[0].key == "big"


# -- ClusterBootstrap ----------------------------------------------------------------------------------------------


def bootstrap(**spec: Any) -> Normal[BootstrapModel]:
    return normal_cluster_bootstrap(read(api.ClusterBootstrap, {"providerRef": {"name": "nutanix-prod"}, **spec}, "m"))


@pytest.mark.parametrize(
    "spec",
    [
        {"network": {"vip": "10.0.0.9"}},
        {"networking": {"vip": "10.0.0.9"}},
        {"cluster": {"controlPlaneEndpoint": "10.0.0.9"}},
    ],
)
def test_the_virtual_address_has_three_spellings(spec: dict[str, Any]) -> None:
    model = good(bootstrap(**spec))
    assert (model.name, model.vip, model.control_plane.replicas, model.workers) == ("m", "10.0.0.9", 3, None)
    assert (model.control_plane.cpu, model.control_plane.memory_mib, model.control_plane.disk_gib) == (4, 16384, 100)


def test_a_virtual_address_inside_the_pool_is_carved_out_with_a_warning() -> None:
    found = bootstrap(
        network={"vip": "10.40.0.200", "loadBalancerPool": {"start": "10.40.0.200", "end": "10.40.0.250"}}
    )
    assert str(good(found).load_balancer) == "10.40.0.201-10.40.0.250"
    assert any("10.40.0.200 is the virtual address" in text for text in found.warnings)
    only = bootstrap(network={"vip": "10.40.0.200"}, platform={"metalLBPool": "10.40.0.200"})
    assert fields(only) == ["spec.platform.metalLBPool"]


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({}, ["spec.network.vip"]),
        (
            {"cluster": {"topology": "single-node", "controlPlane": {"replicas": 3}}},
            ["spec.cluster.controlPlane.replicas"],
        ),
        (
            {"cluster": {"controlPlane": {"replicas": 2}, "controlPlaneEndpoint": "10.0.0.9"}},
            ["spec.cluster.controlPlane.replicas"],
        ),
        ({"network": {"vip": "10.244.0.9"}}, ["spec.network.vip"]),
        (
            {"network": {"vip": "10.0.0.9"}, "cluster": {"controlPlaneEndpoint": "10.0.0.8"}},
            ["spec.cluster.controlPlaneEndpoint"],
        ),
        ({"provider": "nutanix", "type": "harvester", "network": {"vip": "10.0.0.9"}}, ["spec.type"]),
        ({"network": {"vip": "10.0.0.9"}, "cluster": {"name": "a" * 53}}, ["spec.cluster.name"]),
        ({"network": {"vip": "10.0.0.9"}, "talos": {"version": "v1.2.0"}}, ["spec.talos.version"]),
        (
            {"network": {"vip": "10.0.0.9"}, "cluster": {"kubernetesVersion": "v1.36.0"}},
            ["spec.cluster.kubernetesVersion"],
        ),
        ({"network": {"vip": "10.0.0.9"}, "addons": {"ingress": {"type": "nginx"}}}, ["spec.addons.ingress.type"]),
    ],
)
def test_what_is_wrong_with_a_cluster_bootstrap_is_named(spec: dict[str, Any], wrong: list[str]) -> None:
    assert fields(bootstrap(**spec)) == wrong


def test_longhorn_without_its_extensions_is_a_warning() -> None:
    spec: dict[str, Any] = {"network": {"vip": "10.0.0.9"}}
    assert any("iscsi-tools" in text for text in bootstrap(**spec).warnings)
    assert not bootstrap(**spec, talos={"schematic": "e" * 64}).warnings
    assert not bootstrap(**spec, addons={"storage": {"type": "none"}}).warnings


def test_a_single_node_needs_no_virtual_address() -> None:
    model = good(bootstrap(cluster={"topology": "single-node"}))
    assert (model.single_node, model.control_plane.replicas, model.vip) == (True, 1, "")


# -- the others ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        {"providerRef": {"name": "p"}, "role": "control-plane", "cpu": 4, "memoryMB": 16384, "diskGB": 100},
        {
            "providerConfigRef": {"name": "p"},
            "role": "controlplane",
            "resources": {"cpu": 4, "memory": "16Gi", "disk": "100Gi"},
        },
    ],
)
def test_a_machine_request_is_the_same_in_either_spelling(spec: dict[str, Any]) -> None:
    model = good(normal_machine_request(read(api.MachineRequest, {"machineName": "m", **spec})))
    assert (model.provider.name, model.role, model.cpu, model.memory_mib, model.disk_gib) == (
        "p",
        "control-plane",
        4,
        16384,
        100,
    )


SOURCE = {"url": "http://files.example.com/a.qcow2"}
Reader = Callable[[Any], Normal[Any]]
WRONG: list[tuple[Reader, type[Any], dict[str, Any], list[str]]] = [
    (normal_machine_request, api.MachineRequest, {"machineName": "m", "role": "worker"}, ["spec.providerRef"]),
    (
        normal_machine_request,
        api.MachineRequest,
        {"machineName": "m", "role": "worker", "providerRef": {"name": "p"}, "cpu": 4, "resources": {"cpu": 8}},
        ["spec.resources.cpu"],
    ),
    (normal_image_sync, api.ImageSync, {"providerConfigRef": {"name": "p"}}, ["spec.factoryRef"]),
    (
        normal_image_sync,
        api.ImageSync,
        {"providerConfigRef": {"name": "p"}, "source": {"file": "/a.qcow2"}, "transferMode": "direct"},
        ["spec.transferMode"],
    ),
    (normal_network_pool, api.NetworkPool, {"cidr": "10.0.0.1/24"}, ["spec.cidr"]),
    (
        normal_network_pool,
        api.NetworkPool,
        {"cidr": "10.0.0.0/24", "tenantAllocation": {"start": "10.0.1.1", "end": "10.0.1.9"}},
        ["spec.tenantAllocation"],
    ),
    (
        normal_network_pool,
        api.NetworkPool,
        {"cidr": "10.0.0.0/24", "reserved": [{"cidr": "10.0.0.0/24"}]},
        ["spec.reserved"],
    ),
    (
        normal_ip_allocation,
        api.IPAllocation,
        {"type": "nodes", "count": 2, "pinnedRange": {"startAddress": "10.0.0.1", "endAddress": "10.0.0.3"}},
        ["spec.count"],
    ),
    (
        normal_addon_definition,
        api.AddonDefinition,
        {"defaults": {"values": {"a": 1}}, "defaultValues": {"a": 2}},
        ["spec.defaultValues"],
    ),
    (normal_addon_definition, api.AddonDefinition, {"dependsOn": ["a"]}, ["spec.dependsOn"]),
    (normal_tenant_addon, api.TenantAddon, {}, ["spec.addon"]),
    (
        normal_tenant_addon,
        api.TenantAddon,
        {"helm": {"repository": "https://charts.example.com", "chart": "a"}},
        ["spec.version"],
    ),
    (normal_user, api.User, {"email": "ada"}, ["spec.email"]),
    (
        normal_user,
        api.User,
        {"email": "ada@example.com", "isPlatformAdmin": True, "platformRole": "viewer"},
        ["spec.isPlatformAdmin"],
    ),
    (normal_identity_provider, api.IdentityProvider, {"type": "oidc", "oidc": {}}, ["spec.oidc.issuerURL"]),
    (
        normal_cluster_creation_policy,
        api.ClusterCreationPolicy,
        {"options": {"imag": {"mode": "pin", "values": ["a"]}}},
        ["spec.options.imag"],
    ),
    (
        normal_cluster_creation_policy,
        api.ClusterCreationPolicy,
        {"options": {"image": {"mode": "pin"}}},
        ["spec.options.image.values"],
    ),
    (
        normal_team,
        api.Team,
        {"quotas": {"maxClusters": 1}, "resourceLimits": {"maxClusters": 2}},
        ["spec.quotas"],
    ),
    (
        normal_team,
        api.Team,
        {"access": {"users": [{"name": "ada", "role": "admin"}, {"name": "ada"}]}},
        ["spec.access"],
    ),
    (normal_team, api.Team, {"access": {"groups": [{"name": "system:masters"}]}}, ["spec.access.groups"]),
    (normal_network_pool, api.NetworkPool, {"cidr": "0.0.0.0/0"}, ["spec.cidr"]),
    (normal_network_pool, api.NetworkPool, {"cidr": "fe80::/64"}, ["spec.cidr"]),
    (
        normal_image_sync,
        api.ImageSync,
        {"providerConfigRef": {"name": "x"}, "source": {"url": "https://[::1/x.qcow2"}},
        ["spec.source.url"],
    ),
    (
        normal_tenant_addon,
        api.TenantAddon,
        {"version": "1.0.0", "helm": {"repository": "https://a:b@example.com", "chart": "x"}},
        ["spec.helm.repository"],
    ),
    (normal_team, api.Team, {"resourceLimits": {"maxMemory": "-1Gi"}}, ["spec.resourceLimits.maxMemory"]),
    (
        normal_butler_config,
        api.ButlerConfig,
        {"platform": {"metalLBPool": "nonsense"}},
        ["spec.platform.metalLBPool"],
    ),
    (
        normal_butler_config,
        api.ButlerConfig,
        {"controlPlaneExposure": {"mode": "Gateway", "hostname": "*.example.com"}},
        ["spec.controlPlaneExposure.gatewayRef"],
    ),
]


@pytest.mark.parametrize(("normal", "kind", "spec", "wrong"), WRONG)
def test_what_is_wrong_is_named_with_its_field(
    normal: Reader, kind: type[Any], spec: dict[str, Any], wrong: list[str]
) -> None:
    assert fields(normal(read(kind, spec))) == wrong


def test_a_network_pool_gives_out_hosts_alone() -> None:
    spec = {"cidr": "10.0.0.0/29", "reserved": [{"cidr": "10.0.0.2/32"}]}
    assert str(good(normal_network_pool(read(api.NetworkPool, spec))).usable) == "10.0.0.1, 10.0.0.3-10.0.0.6"


@pytest.mark.parametrize("name", ["default", "kube-system", "butler-system"])
def test_a_team_cannot_take_a_namespace_of_the_platform(name: str) -> None:
    assert fields(normal_team(read(api.Team, {}, name, ""))) == ["metadata.name"]


def test_members_of_environments_are_members_there_alone() -> None:
    team = team_of(
        {
            "access": {"users": [{"name": "ada", "role": "admin"}, {"name": "bob"}]},
            "environments": [{"name": "dev", "access": {"users": [{"name": "bob", "role": "operator"}]}}],
        }
    )
    assert [(each.name, each.role, each.environment) for each in team.members] == [
        ("ada", "admin", ""),
        ("bob", "viewer", ""),
        ("bob", "operator", "dev"),
    ]


def test_the_most_specific_policy_counts() -> None:
    def policy(name: str, scope: dict[str, Any], *values: str) -> Any:
        spec = {"scope": scope, "options": {"image": {"mode": "allowList", "values": list(values)}}}
        return good(normal_cluster_creation_policy(read(api.ClusterCreationPolicy, spec, name, "")))

    policies = [
        policy("all", {"platformWide": {}}, "rocky"),
        policy("team", {"team": {"teamRef": {"name": "t"}}}, "talos"),
        policy("env", {"teamAndEnvironment": {"teamRef": {"name": "t"}, "environmentName": "prod"}}, "flatcar"),
    ]
    for team, environment, expected in (("t", "prod", "env"), ("t", "dev", "team"), ("x", "prod", "all")):
        found = rule_for(policies, "image", team, environment, "nutanix")
        assert found is not None
        assert found[0].name == expected
    found = rule_for(policies, "image", "t", "", "nutanix")
    assert found is not None
    assert "is not allowed by ClusterCreationPolicy team: choose talos" in refusal(*found, ["rocky", "uuid"])
    assert refusal(*found, ["talos"]) == ""
    assert rule_for(policies, "network", "t", "", "nutanix") is None
