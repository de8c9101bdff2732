from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.capi.contract import (
    Contract,
    Endpoint,
    FailureDomain,
    StatusVersion,
    bootstrap,
    conditions,
    control_plane,
    infra_cluster,
    infra_machine,
    infra_template,
)
from homeport.capi.resolution import Contracts, NotInstalled, pick, plural
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import definition, plane

GROUP = "infrastructure.cluster.x-k8s.io"


class Ref(NamedTuple):
    api_group: str
    kind: str
    name: str


@pytest.mark.parametrize(
    ("kind", "many"),
    [
        ("NutanixMachine", "nutanixmachines"),
        ("ClusterClass", "clusterclasses"),
        ("IPAddress", "ipaddresses"),
        ("Proxy", "proxies"),
        ("Gateway", "gateways"),
    ],
)
def test_plurals(kind: str, many: str) -> None:
    assert plural(kind) == many


@pytest.mark.parametrize(
    ("labels", "version", "contract"),
    [
        ({"cluster.x-k8s.io/v1beta1": "v1beta1"}, "v1beta1", "v1beta1"),
        ({"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}, "v1beta2", "v1beta2"),
        ({"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta1_v1"}, "v1", "v1beta2"),
        ({"cluster.x-k8s.io/v1beta2": "v1beta2_v1beta10"}, "v1beta10", "v1beta2"),
        ({"cluster.x-k8s.io/v1beta2": "", "cluster.x-k8s.io/v1beta1": "v1alpha4"}, "v1alpha4", "v1beta1"),
    ],
)
def test_the_newest_version_of_the_newest_contract_is_used(
    labels: dict[str, str], version: str, contract: Contract
) -> None:
    found = pick(labels, GROUP, "FooMachine")
    assert found is not None
    assert (found.resource.version, found.contract) == (version, contract)


def test_without_a_contract_there_is_nothing_to_use() -> None:
    assert pick({"cluster.x-k8s.io/v1alpha4": "v1alpha4"}, GROUP, "FooMachine") is None


async def reached(contracts: Contracts, written: Unstructured) -> None:
    while contracts.informer.cache.revision < int(written.resource_version):
        await contracts.informer.cache.news(revision=int(written.resource_version))


async def test_definitions_are_followed() -> None:
    async with plane() as p:
        contracts = Contracts(p.manager.informers)
        ref = Ref(GROUP, "FooMachine", "a")
        with pytest.raises(NotInstalled, match=r"FooMachine of group infra.* install its provider"):
            contracts.resolve(ref)
        crd = definition(Resource(GROUP, "v1beta1", "FooMachine", "foomachines"))
        await p.start()
        (made,) = await p.have(crd)
        await reached(contracts, made)
        with pytest.raises(NotInstalled, match=r"has no label cluster\.x-k8s\.io/v1beta2"):
            contracts.resolve(ref)
        labels = {"metadata": {"labels": {"cluster.x-k8s.io/v1beta1": "v1beta1"}}}
        changed = await p.client.patch(contracts.informer.resource, Key("", made.name), MergePatch(labels))
        await reached(contracts, changed)
        assert contracts.resolve(ref).resource == Resource(GROUP, "v1beta1", "FooMachine", "foomachines")


# -- conditions ------------------------------------------------------------------------------------------------------

OLD: dict[str, Any] = {"type": "Ready", "status": "False", "severity": "Error", "reason": "Broken", "message": "m"}
NEW: dict[str, Any] = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 2}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [OLD]}, ("False", "Broken", "m")),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, ("True", "NoReasonReported", "")),
        ({"conditions": [OLD], "v1beta2": {"conditions": [NEW]}}, ("True", "Ready", "")),
        ({"conditions": [NEW]}, ("True", "Ready", "")),
        ({"conditions": [{"type": "Ready", "status": "Maybe"}]}, None),
        ({"conditions": "nonsense"}, None),
        ({}, None),
    ],
)
def test_conditions_are_read_from_every_layout(status: dict[str, Any], expected: tuple[str, str, str] | None) -> None:
    found = infra_cluster.ready({"status": status})
    assert (found and (found["status"], found["reason"], found["message"])) == expected


def test_a_severity_does_not_survive() -> None:
    assert "severity" not in conditions({"status": {"conditions": [OLD]}})[0]


# -- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "contract", "value"),
    [
        ({"status": {"ready": True}}, "v1beta1", True),
        ({"status": {"ready": True}}, "v1beta2", False),
        ({"status": {"initialization": {"provisioned": True}}}, "v1beta2", True),
        ({"status": {"initialization": {"provisioned": True}}}, "v1beta1", False),
        ({"status": {"ready": "true"}}, "v1beta1", False),
        ({}, "v1beta2", False),
    ],
)
def test_provisioned_by_contract(obj: dict[str, Any], contract: Contract, value: bool) -> None:
    assert infra_cluster.provisioned(obj, contract) is value
    assert infra_machine.provisioned(obj, contract) is value


@pytest.mark.parametrize(
    ("endpoint", "value"),
    [
        ({"host": "10.0.0.1", "port": 6443}, Endpoint("10.0.0.1", 6443)),
        ({"host": "", "port": 0}, None),
        ({"host": "a"}, None),
        (None, None),
    ],
)
def test_an_endpoint_counts_when_both_parts_are_known(endpoint: Any, value: Endpoint | None) -> None:
    assert infra_cluster.endpoint({"spec": {"controlPlaneEndpoint": endpoint}}) == value


def test_an_address_of_ipv6_is_bracketed() -> None:
    assert str(Endpoint("fd00::1", 6443)) == "[fd00::1]:6443"
    assert str(Endpoint("a", 1)) == "a:1"


def test_failure_domains_are_a_map_or_a_list_and_come_sorted() -> None:
    expected = [FailureDomain("a", False, {}), FailureDomain("b", True, {"x": "y"})]
    old = {"status": {"failureDomains": {"b": {"controlPlane": True, "attributes": {"x": "y"}}, "a": {}}}}
    new = {"status": {"failureDomains": [{"name": "b", "controlPlane": True, "attributes": {"x": "y"}}, {"name": "a"}]}}
    assert infra_cluster.failure_domains(old, "v1beta1") == expected
    assert infra_cluster.failure_domains(new, "v1beta2") == expected
    assert infra_cluster.failure_domains({}, "v1beta2") == []


def test_two_domains_with_attributes_of_the_same_name_can_be_sorted() -> None:
    both = {"status": {"failureDomains": [{"name": "a", "attributes": {"x": "1"}}, {"name": "a", "attributes": {}}]}}
    assert len(infra_cluster.failure_domains(both, "v1beta2")) == 2


def test_a_machine_of_the_new_contract_may_say_its_domain_the_old_way() -> None:
    obj = {"spec": {"failureDomain": "old"}, "status": {"failureDomain": "new"}}
    assert infra_machine.failure_domain(obj, "v1beta1") == "old"
    assert infra_machine.failure_domain(obj, "v1beta2") == "new"
    assert infra_machine.failure_domain({"spec": {"failureDomain": "old"}}, "v1beta2") == "old"


def test_a_machine() -> None:
    obj = {
        "spec": {"providerID": "nutanix://1"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname"}],
            "interruptible": True,
        },
    }
    assert infra_machine.provider_id(obj) == "nutanix://1"
    assert infra_machine.addresses(obj) == [{"type": "InternalIP", "address": "10.0.0.1"}]
    assert infra_machine.interruptible(obj)
    assert infra_machine.failure(obj) is None
    assert infra_machine.failure({"status": {"failureMessage": "gone"}}) == ("", "gone")


def test_a_bootstrap_config() -> None:
    obj = {"status": {"dataSecretName": "s", "ready": True, "initialization": {"dataSecretCreated": False}}}
    assert bootstrap.data_secret_name(obj) == "s"
    assert bootstrap.created(obj, "v1beta1")
    assert not bootstrap.created(obj, "v1beta2")


def test_a_template() -> None:
    obj = {
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}},
        "status": {"capacity": {"cpu": "2"}},
    }
    assert infra_template.template(obj) == {"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}
    assert infra_template.template({}) == {"metadata": {}, "spec": {}}
    assert infra_template.capacity(obj) == {"cpu": "2"}


def kcp(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    return {"spec": {"replicas": 3, "version": "v1.32.1", **(spec or {})}, "status": status}


def test_replicas_of_a_control_plane_by_contract() -> None:
    old = kcp(replicas=3, readyReplicas=2, updatedReplicas=1, unavailableReplicas=1)
    assert control_plane.available_replicas(old, "v1beta1") == 2
    assert control_plane.up_to_date_replicas(old, "v1beta1") == 1
    assert control_plane.available_replicas(old, "v1beta2") is None
    new = kcp(replicas=3, readyReplicas=2, upToDateReplicas=1, availableReplicas=2)
    assert control_plane.available_replicas(new, "v1beta2") == 2
    assert control_plane.up_to_date_replicas(new, "v1beta2") == 1


FULL = {"replicas": 3, "readyReplicas": 3, "upToDateReplicas": 3, "availableReplicas": 3}


@pytest.mark.parametrize(
    ("status", "provisioning", "upgrading"),
    [
        ({}, True, False),
        ({"version": "v1.32.1"}, False, False),
        ({"version": "v1.31.9"}, False, True),
        ({"version": "v1.33.0"}, False, False),
        ({"versions": [{"version": "v1.31.0", "replicas": 1}, {"version": "v1.32.1"}]}, False, True),
        ({"versions": [{"version": "v1.32.1"}], "version": "v1.31.0"}, False, False),
    ],
)
def test_a_control_plane_upgrades_while_something_runs_an_older_version(
    status: dict[str, Any], provisioning: bool, upgrading: bool
) -> None:
    assert control_plane.is_provisioning(kcp(**status)) is provisioning
    assert control_plane.is_upgrading(kcp(**status)) is upgrading


def test_versions_that_run() -> None:
    assert control_plane.status_versions(kcp(version="v1.31.0")) == [StatusVersion("v1.31.0")]
    assert control_plane.status_versions(kcp(versions=[{"version": "v1.31.0", "replicas": 2}])) == [
        StatusVersion("v1.31.0", 2)
    ]


def test_a_control_plane_of_the_old_contract_has_ready_for_available() -> None:
    obj = {"status": {"conditions": [NEW], "initialized": True}}
    assert control_plane.available(obj, "v1beta1") is not None
    assert control_plane.available(obj, "v1beta2") is None
    assert control_plane.initialized(obj, "v1beta1")
    assert not control_plane.initialized(obj, "v1beta2")
