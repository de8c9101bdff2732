"""Values of the Nutanix templates: what is refused and why, and what they become."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from homeport.capi.k0s.clusterconfig import problems
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.cluster.config import ClusterConfig, read_config
from homeport.platforms.k0rdent.cluster.k0s import k0s_config
from homeport.platforms.k0rdent.cluster.kubeadm import KUBEADM
from homeport.platforms.k0rdent.cluster.merge import merged
from homeport.platforms.k0rdent.cluster.schema import default_values, values_schema
from homeport.platforms.k0rdent.cluster.topology import render_topology
from homeport.platforms.k0rdent.cluster.vendor import Access, Chart
from homeport.platforms.k0rdent.harvester import vendor as harvester
from homeport.platforms.k0rdent.nutanix.vendor import HCP, NUTANIX, STANDALONE
from homeport.platforms.k0rdent.setting.find import Settings
from homeport.platforms.k0rdent.setting.render import with_settings
from homeport.platforms.k0rdent.values import faults

UUID = "550e8400-e29b-41d4-a716-446655440000"
PLAIN: dict[str, Any] = {
    "nutanix": {
        "prismCentral": {"address": "10.1.1.100"},
        "controlPlaneEndpoint": {"host": "10.1.1.200"},
    },
    "machineDefaults": {
        "image": {"type": "name", "name": "ubuntu-22.04-k0s"},
        "cluster": {"type": "name", "name": "PE-Cluster-01"},
        "subnets": [{"type": "name", "name": "VM-Network"}],
    },
}


def values(**change: Any) -> dict[str, Any]:
    """`machineDefaults={...}` is merged into the plain values."""
    return merged(copy.deepcopy(PLAIN), change)


def read(chart: Chart = HCP, **change: Any) -> ClusterConfig:
    made, wrong = read_config(chart, values(**change))
    assert made is not None, wrong
    return made


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"machineDefalts": {}}, "machineDefalts", 'did you mean "machineDefaults"?'),
        ({"k0s": {"worker": {"lables": {}}}}, "k0s.worker.lables", 'did you mean "labels"?'),
        ({"workerNumber": 3}, "workerNumber", 'did you mean "workersNumber"?'),
        ({"nutanix": {"prismCentral": {"adress": "x"}}}, "nutanix.prismCentral.adress", 'did you mean "address"?'),
        ({"machineDefaults": {"image": {"nmae": "x"}}}, "machineDefaults.image.nmae", 'did you mean "name"?'),
        ({"zzz": 1}, "zzz", "known fields: capx, class"),
        ({"workersNumber": "two"}, "workersNumber", "must be a whole number, not a text"),
        ({"workersNumber": 1.5}, "workersNumber", "must be a whole number"),
        ({"workersNumber": True}, "workersNumber", "must be a whole number, not true or false"),
        ({"workersNumber": -1}, "workersNumber", "must be at least 0"),
        ({"nutanix": {"prismCentral": {"port": 70000}}}, "nutanix.prismCentral.port", "must be at most 65535"),
        ({"machineDefaults": {"bootType": "bios"}}, "machineDefaults.bootType", "must be one of 'legacy', 'uefi'"),
        ({"machineDefaults": {"image": 7}}, "machineDefaults.image", "must be a map or a text, not a number"),
        ({"machineDefaults": {"vcpuSockets": 0}}, "machineDefaults.vcpuSockets", "must be at least 1"),
        ({"k0s": {"worker": {"taints": [{"efect": "NoSchedule"}]}}}, "k0s.worker.taints[0].efect", '"effect"'),
        ({"controlPlane": {}}, "controlPlane", 'did you mean "controlPlaneNumber"?'),
    ],
)
def test_what_does_not_match_the_schema_is_refused_with_the_field(
    change: dict[str, Any], field: str, words: str
) -> None:
    found = {each.field: each.message for each in faults(values_schema(HCP), values(**change), "spec.config")}
    assert list(found) == [f"spec.config.{field}"]
    assert words in found[f"spec.config.{field}"]


def test_messages_do_not_repeat_values() -> None:
    change = {"nutanix": {"prismCentral": {"address": {"password": "hunter2"}}}}
    found = list(faults(values_schema(HCP), values(**change), "spec.config"))
    assert found
    assert not [each for each in found if "hunter2" in each.message]


@pytest.mark.parametrize("chart", [HCP, STANDALONE])
def test_defaults_match_their_own_schema(chart: Chart) -> None:
    schema = values_schema(chart)
    assert list(faults(schema, default_values(schema), "spec.config")) == []


@pytest.mark.parametrize(
    "change",
    [
        {"machineDefaults": {"subnet": {"type": "name", "name": "VM-Network"}}},
        {"machineDefaults": {"subnet": "VM-Network"}},
        {"machineDefaults": {"subnet": [{"name": "VM-Network"}]}},
        {"machineDefaults": {"subnets": ["VM-Network"]}},
        {"machineDefaults": {"subnets": [{"type": "name", "name": "VM-Network", "uuid": ""}]}},
        {"worker": {"subnets": [{"name": "VM-Network"}]}},
    ],
)
def test_every_spelling_of_a_subnet_is_the_same(change: dict[str, Any]) -> None:
    given = values(machineDefaults={"subnets": None})
    given = merged(given, change)
    assert list(faults(values_schema(HCP), given, "spec.config")) == []
    made, wrong = read_config(HCP, given)
    assert made is not None, wrong
    assert made.worker["subnet"] == [{"type": "name", "name": "VM-Network"}]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("k0s-project", {"type": "name", "name": "k0s-project"}),
        ({"type": "name", "name": "k0s-project"}, {"type": "name", "name": "k0s-project"}),
        (UUID, {"type": "uuid", "uuid": UUID}),
        ({"type": "uuid", "uuid": UUID, "name": ""}, {"type": "uuid", "uuid": UUID}),
        ("", None),
    ],
)
def test_every_spelling_of_a_project_is_understood(given: Any, found: Any) -> None:
    assert read(machineDefaults={"project": given}).worker.get("project") == found


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("environment:production", {"key": "environment", "value": "production"}),
        ("environment=production", {"key": "environment", "value": "production"}),
        ({"key": "environment", "value": "production"}, {"key": "environment", "value": "production"}),
        ("hcp", {"key": "k0rdent", "value": "hcp"}),
    ],
)
def test_every_spelling_of_a_category_is_understood(given: Any, found: Any) -> None:
    assert read(machineDefaults={"additionalCategories": [given]}).worker["additionalCategories"] == [found]


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"nutanix": {"prismCentral": {"address": None}}}, "nutanix.prismCentral.address", "is required"),
        ({"machineDefaults": {"image": None}}, "machineDefaults.image", "is required"),
        ({"machineDefaults": {"subnets": []}}, "machineDefaults.subnets", "at least one subnet"),
        ({"machineDefaults": {"subnets": ["a", "a"]}}, "machineDefaults.subnets", "has a subnet twice"),
        (
            {"machineDefaults": {"image": {"type": "uuid", "uuid": "7"}}},
            "machineDefaults.image.uuid",
            "not a valid UUID",
        ),
        (
            {"machineDefaults": {"image": {"type": "uuid", "name": "a"}}},
            "machineDefaults.image",
            "set uuid, or type: name",
        ),
        ({"machineDefaults": {"memorySize": "1Gi"}}, "machineDefaults.memorySize", "1Gi is below the minimum of 2Gi"),
        ({"worker": {"systemDiskSize": "10Gi"}}, "worker.systemDiskSize", "10Gi is below the minimum of 20Gi"),
        ({"worker": {"memorySize": "lots"}}, "worker.memorySize", "not a valid quantity"),
        ({"k0s": {"version": "1.29"}}, "k0s.version", "not a valid k0s version"),
        ({"clusterNetwork": {"pods": {"cidrBlocks": ["10.1"]}}}, "clusterNetwork.pods.cidrBlocks", "CIDR notation"),
        (
            {"nutanix": {"prismCentral": {"usePerClusterCredential": True}}},
            "nutanix.prismCentral.credentialSecretName",
            "is required with usePerClusterCredential: true",
        ),
        ({"machineDefaults": {"additionalCategories": [":x"]}}, "machineDefaults.additionalCategories[0]", "KEY:VALUE"),
        (
            {"machineDefaults": {"memorySize": "4G i"}, "worker": {"memorySize": "4Gi"}},
            "machineDefaults.memorySize",
            "quantity",
        ),
        (
            {"clusterNetwork": {"pods": {"cidrBlocks": ["10.95.0.0/17"]}}},
            "clusterNetwork.services.cidrBlocks",
            "overlaps with",
        ),
        ({"k0s": {"worker": {"labels": {"a b": "c"}}}}, "k0s.worker.labels.a b", "not a valid key of a label"),
        ({"clusterLabels": {"a": "b c"}}, "clusterLabels.a", "not a valid value of a label"),
        (
            {"nutanix": {"controlPlaneEndpoint": {"host": "10.0.0.300"}}},
            "nutanix.controlPlaneEndpoint.host",
            "not an IP",
        ),
        ({"nutanix": {"prismCentral": {"address": "https://prism"}}}, "nutanix.prismCentral.address", "or host name"),
        (
            {"machineHealthCheck": {"maxUnhealthy": "lots"}},
            "machineHealthCheck.maxUnhealthy",
            "expected for example 2 or 40%",
        ),
    ],
)
def test_what_can_not_work_is_refused_with_the_field(change: dict[str, Any], field: str, words: str) -> None:
    made, wrong = read_config(HCP, values(**change))
    assert made is None
    found = {each.field: each.message for each in wrong}
    assert words in found[f"spec.config.{field}"]


def test_a_standalone_cluster_needs_an_address() -> None:
    made, wrong = read_config(STANDALONE, values(nutanix={"controlPlaneEndpoint": {"host": None}}))
    assert made is None
    assert [each.field for each in wrong] == ["spec.config.nutanix.controlPlaneEndpoint.host"]


def test_a_role_wins_over_all_machines_and_these_win_over_the_defaults_of_the_role() -> None:
    plain = read(STANDALONE)
    assert (plain.worker["memorySize"], plain.control_plane["memorySize"]) == ("4Gi", "8Gi")
    common = read(STANDALONE, machineDefaults={"memorySize": "16Gi", "vcpuSockets": 6})
    assert (common.worker["memorySize"], common.control_plane["memorySize"]) == ("16Gi", "16Gi")
    own = read(STANDALONE, machineDefaults={"memorySize": "16Gi"}, controlPlane={"memorySize": "32Gi"})
    assert (own.worker["memorySize"], own.control_plane["memorySize"]) == ("16Gi", "32Gi")


def test_two_versions_that_are_written_differently_are_one() -> None:
    assert read(k0s={"version": "v1.29.2-k0s.0"}).version == "v1.29.2+k0s.0"


def test_labels_that_the_kubelet_may_not_set_are_left_to_cluster_api() -> None:
    labels = {"node-role.kubernetes.io/worker": "", "nutanix.com/cluster": "pe-cluster-01"}
    taints = [{"key": "workload", "value": "batch", "effect": "NoSchedule"}]
    spec = render_topology(read(k0s={"worker": {"labels": labels, "taints": taints}}), Access(Key("a", "b")))
    (workers,) = spec["topology"]["workers"]["machineDeployments"]
    assert workers["metadata"]["labels"] == labels
    assert workers["taints"] == [{**taints[0], "propagation": "Always"}]
    args = next(each for each in spec["topology"]["variables"] if each["name"] == "k0sConfig")["value"]["worker"][
        "args"
    ]
    assert "--labels=nutanix.com/cluster=pe-cluster-01" in args


def test_configuration_of_k0s_is_merged_and_the_users_wins() -> None:
    extensions = {"helm": {"repositories": [{"name": "nutanix", "url": "https://nutanix.github.io/helm/"}]}}
    made = k0s_config(read(k0s={"config": {"spec": {"extensions": extensions, "telemetry": {"enabled": True}}}}))
    assert made["kind"] == "ClusterConfig"
    assert made["spec"] == {"telemetry": {"enabled": True}, "extensions": extensions}


def test_a_standalone_cluster_has_its_network_in_the_configuration_of_k0s() -> None:
    network = k0s_config(read(STANDALONE, k0s={"calico": {"mode": "ipip"}}))["spec"]["network"]
    assert network == {
        "provider": "calico",
        "podCIDR": "10.243.0.0/16",
        "serviceCIDR": "10.95.0.0/16",
        "calico": {"mode": "ipip"},
    }


@pytest.mark.parametrize("mode", ["", "ipip", "vxlan", "bgp"])
@pytest.mark.parametrize("chart", [HCP, STANDALONE])
def test_k0s_accepts_what_is_rendered(chart: Chart, mode: str) -> None:
    calico = {"calico": {"mode": mode, "mtu": 1400}} if chart is STANDALONE else {}
    assert list(problems(k0s_config(read(chart, k0s=calico))["spec"])) == []


def test_a_typing_error_in_the_configuration_of_k0s_is_refused() -> None:
    wrong = {"config": {"spec": {"network": {"kubeProxi": {"disabled": True}}}}}
    _, found = read_config(HCP, values(k0s=wrong))
    assert [(each.field, each.message) for each in found] == [
        ("spec.config.k0s.config.spec.network.kubeProxi", 'unknown field; did you mean "kubeProxy"?')
    ]


def test_unhealthy_workers_are_replaced_only_if_that_is_asked_for() -> None:
    plain = render_topology(read(), Access(Key("a", "b")))["topology"]["workers"]["machineDeployments"][0]
    assert "healthCheck" not in plain
    asked = render_topology(read(machineHealthCheck={"enabled": True}), Access(Key("a", "b")))
    check = asked["topology"]["workers"]["machineDeployments"][0]["healthCheck"]
    assert check["remediation"] == {"triggerIf": {"unhealthyLessThanOrEqualTo": "40%"}}


HARVESTER: dict[str, Any] = {
    "harvester": {"controlPlaneEndpoint": {"host": "10.40.0.200"}},
    "machineDefaults": {"image": "default/ubuntu", "networks": ["default/workloads"], "memorySize": "6Gi"},
}


@pytest.mark.parametrize("chart", [harvester.HCP, harvester.STANDALONE])
def test_values_of_harvester_become_machines_and_the_secret_of_the_credential(chart: Chart) -> None:
    own = {**HARVESTER, "worker": {"cpuCores": 8, "namespace": "vms", "keyPairs": ["default/ops"]}}
    assert list(faults(values_schema(chart), own, "spec.config")) == []
    config, wrong = read_config(chart, own)
    assert config is not None, wrong
    machine = config.worker["virtualMachineTemplate"]
    assert machine["metadata"] == {"namespace": "vms"}
    inner = machine["spec"]["template"]["spec"]
    assert inner["domain"] == {"cpu": {"cores": 8}, "memory": {"guest": "6Gi"}}
    assert inner["networks"] == [{"name": "nic-0", "multus": {"networkName": "default/workloads"}}]
    assert config.worker["bootDisk"] == {"image": "default/ubuntu", "size": "40Gi"}
    topology = render_topology(config, Access(Key("kcm-system", "account")))["topology"]
    assert topology["classRef"]["name"] == chart.name
    found = {each["name"]: each["value"] for each in topology["variables"]}["harvesterClusterConfig"]
    assert found["infraClusterSecretRef"] == {"name": "account", "namespace": "kcm-system"}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"machineDefaults": {}}, "machineDefaults.image", "an image of Harvester"),
        ({"machineDefaults": {"image": "a"}}, "machineDefaults.networks", "at least one VM network"),
        ({"worker": {"networks": ["a/b", "a/b"]}}, "worker.networks", "has a network twice"),
        ({"worker": {"memorySize": "1Gi"}}, "worker.memorySize", "below the minimum of 2Gi"),
        ({"harvester": {}}, "harvester.controlPlaneEndpoint.host", "is required"),
    ],
)
def test_what_is_missing_on_harvester_is_named(change: dict[str, Any], field: str, words: str) -> None:
    _, wrong = read_config(harvester.STANDALONE, {**HARVESTER, **change})
    assert [each for each in wrong if each.field == f"spec.config.{field}" and words in each.message]


def test_fields_of_another_infrastructure_are_refused() -> None:
    strange = {**HARVESTER, "nutanix": {}, "machineDefaults": {"vcpuSockets": 2}}
    found = {each.field for each in faults(values_schema(harvester.HCP), strange, "spec.config")}
    assert found == {"spec.config.nutanix", "spec.config.machineDefaults.vcpuSockets"}


KUBEADM_STANDALONE, KUBEADM_HCP = Chart(NUTANIX, KUBEADM, hosted=False), Chart(NUTANIX, KUBEADM, hosted=True)


@pytest.mark.parametrize("chart", [KUBEADM_STANDALONE, KUBEADM_HCP])
@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"kubeadm": {"verison": "v1.33.4"}}, "kubeadm.verison", 'did you mean "version"?'),
        ({"kubeadm": {"worker": {"lables": {}}}}, "kubeadm.worker.lables", 'did you mean "labels"?'),
        ({"kubadm": {}}, "kubadm", 'did you mean "kubeadm"?'),
        ({"network": {"provider": "kube-router"}}, "network.provider", "must be one of 'calico', 'cilium', 'flannel'"),
    ],
)
def test_values_of_kubeadm_are_strict(chart: Chart, change: dict[str, Any], field: str, words: str) -> None:
    found = {each.field: each.message for each in faults(values_schema(chart), values(**change), "spec.config")}
    assert list(found) == [f"spec.config.{field}"]
    assert words in found[f"spec.config.{field}"]


@pytest.mark.parametrize("version", ["v1.33", "v1.33.4+k0s.0", "latest"])
def test_a_version_that_kubeadm_does_not_have_is_refused(version: str) -> None:
    made, wrong = read_config(KUBEADM_STANDALONE, values(kubeadm={"version": version}))
    assert made is None
    assert [each.field for each in wrong] == ["spec.config.kubeadm.version"]
    assert "expected for example v1.33.4" in wrong[0].message


def test_settings_reach_api_servers_of_kubeadm_as_files_and_of_hosted_ones_as_volumes() -> None:
    settings = Settings(authentication="kind: AuthenticationConfiguration\n", audit="kind: Policy\n")
    alone = KUBEADM.value(with_settings(read(KUBEADM_STANDALONE), settings, "demo"))["controlPlane"]
    server = alone["clusterConfiguration"]["apiServer"]
    named = {each["name"]: each["value"] for each in server["extraArgs"]}
    paths = {each["path"] for each in alone["files"]}
    assert {named["authentication-config"], named["audit-policy-file"]} == paths
    assert all(path.startswith(f"{server['extraVolumes'][0]['hostPath']}/") for path in paths)
    plane = KUBEADM.value(with_settings(read(KUBEADM_HCP), settings, "demo"))["controlPlane"]
    mounted = {each["name"]: each["mountPath"] for each in plane["apiServer"]["extraVolumeMounts"]}
    assert mounted.keys() == {each["name"] for each in plane["deployment"]["extraVolumes"]}
    assert f"--authentication-config={mounted['settings-0']}/config" in plane["apiServer"]["extraArgs"]
    assert plane["deployment"]["extraVolumes"][0]["secret"] == {"secretName": "demo-auth-config"}


def test_another_port_is_the_port_of_the_api_servers() -> None:
    config = read(KUBEADM_STANDALONE, nutanix={"controlPlaneEndpoint": {"port": 7443}})
    made = render_topology(config, Access(Key("kcm-system", "creds")))
    assert made["clusterNetwork"]["apiServerPort"] == 7443
    plane = KUBEADM.value(config)["controlPlane"]
    assert plane["initConfiguration"]["localAPIEndpoint"] == {"bindPort": 7443}
    assert plane["joinConfiguration"]["controlPlane"]["localAPIEndpoint"] == {"bindPort": 7443}
