"""What kinds of the KubeVirt provider may say."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from homeport.providers.harvester.admission import validate_cluster, validate_machine, validate_template

Json = dict[str, Any]


def machine(**spec: Any) -> Json:
    return {"metadata": {"name": "m"}, "spec": spec}


def template(spec: Json, **annotations: str) -> Json:
    return {"metadata": {"name": "t", "annotations": annotations}, "spec": {"template": {"spec": spec}}}


def vm(inner: Json | None = None, **spec: Any) -> Json:
    return {"virtualMachineTemplate": {"spec": {**spec, "template": {"spec": inner or {}}}}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (vm(runStrategy="Sometimes"), "spec.virtualMachineTemplate.spec.runStrategy"),
        (vm(runStrategy="Always", running=True), "spec.virtualMachineTemplate.spec.running"),
        (vm({"domain": {"cpu": {"cores": 0}}}), "spec.virtualMachineTemplate.spec.template.spec.domain.cpu.cores"),
        (
            vm({"domain": {"memory": {"guest": "much"}}}),
            "spec.virtualMachineTemplate.spec.template.spec.domain.memory.guest",
        ),
        (vm({"networks": [{"multus": {}}]}), "spec.virtualMachineTemplate.spec.template.spec.networks[0].name"),
        (
            vm({"networks": [{"name": "a", "multus": {}}]}),
            "spec.virtualMachineTemplate.spec.template.spec.networks[0].multus.networkName",
        ),
        (
            vm({"volumes": [{"name": "cloudinitvolume"}]}),
            "spec.virtualMachineTemplate.spec.template.spec.volumes[0].name",
        ),
        ({"bootDisk": {"image": "x", "size": "0"}}, "spec.bootDisk.size"),
        ({"dataDisks": [{"name": "a", "size": "1Gi"}, {"name": "a", "size": "1Gi"}]}, "spec.dataDisks[1].name"),
        ({"bootDisk": {"image": "x"}, "dataDisks": [{"name": "boot", "size": "1Gi"}]}, "spec.dataDisks[0].name"),
        ({"addressesFromPools": [{"kind": "InClusterIPPool", "name": "p"}]}, "spec.addressesFromPools"),
        (
            {
                "virtualMachineTemplate": {
                    "metadata": {"annotations": {"harvesterhci.io/volumeClaimTemplates": "{"}},
                }
            },
            "spec.virtualMachineTemplate.metadata.annotations[harvesterhci.io/volumeClaimTemplates]",
        ),
    ],
)
def test_what_can_not_work_is_refused_by_its_field(spec: Json, field: str) -> None:
    assert [cause.field for cause in validate_machine(machine(**spec), None)] == [field]


def test_a_machine_as_guides_have_it_is_accepted() -> None:
    inner = {
        "domain": {"cpu": {"cores": 4}, "memory": {"guest": "8Gi"}, "devices": {}},
        "networks": [{"name": "a", "multus": {"networkName": "default/workloads"}}],
    }
    assert (
        validate_machine(machine(**vm(inner, runStrategy="Always"), bootDisk={"image": "x", "size": "40Gi"}), None)
        == []
    )


def test_a_template_is_immutable_but_for_dry_runs_of_topologies() -> None:
    old = template(vm(runStrategy="Always"))
    new = copy.deepcopy(old)
    new["spec"]["template"]["spec"]["virtualMachineTemplate"]["spec"]["runStrategy"] = "Manual"
    (cause,) = validate_template(new, old)
    assert (cause.reason, cause.field) == ("FieldValueForbidden", "spec.template.spec")
    new["metadata"]["annotations"] = {"topology.cluster.x-k8s.io/dry-run": ""}
    assert validate_template(new, old) == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"controlPlaneEndpoint": {"host": "https://x"}}, "spec.controlPlaneEndpoint.host"),
        ({"infraClusterSecretRef": {"namespace": "x"}}, "spec.infraClusterSecretRef.name"),
        (
            {"controlPlaneServiceTemplate": {}, "controlPlaneLoadBalancer": {}},
            "spec.controlPlaneLoadBalancer",
        ),
    ],
)
def test_a_cluster_that_can_not_work_is_refused_by_its_field(spec: Json, field: str) -> None:
    assert [cause.field for cause in validate_cluster({"spec": spec}, None)] == [field]


_VM = "spec.virtualMachineTemplate"
_INNER = f"{_VM}.spec.template.spec"
_INNER_CASES: list[tuple[Json, str]] = [
    ({"domain": "x"}, "domain"),
    ({"domain": {"cpu": "x"}}, "domain.cpu"),
    ({"domain": {"memory": 8}}, "domain.memory"),
    ({"domain": {"resources": "x"}}, "domain.resources"),
    ({"domain": {"resources": {"requests": "x"}}}, "domain.resources.requests"),
    ({"domain": {"devices": "x"}}, "domain.devices"),
    ({"domain": {"devices": {"disks": "x"}}}, "domain.devices.disks"),
    ({"domain": {"devices": {"interfaces": ["x"]}}}, "domain.devices.interfaces[0]"),
    ({"networks": "x"}, "networks"),
    ({"networks": [{"name": "a", "multus": "x"}]}, "networks[0].multus"),
    ({"volumes": [{"name": "v", "persistentVolumeClaim": "x"}]}, "volumes[0].persistentVolumeClaim"),
    ({"affinity": "x"}, "affinity"),
    ({"affinity": {"nodeAffinity": "x"}}, "affinity.nodeAffinity"),
    ({"nodeSelector": "x"}, "nodeSelector"),
    ({"dnsConfig": "x"}, "dnsConfig"),
]


@pytest.mark.parametrize(
    ("template", "field"),
    [
        ({"metadata": {"labels": "x"}}, f"{_VM}.metadata.labels"),
        ({"metadata": {"annotations": "x"}}, f"{_VM}.metadata.annotations"),
        ({"metadata": {"namespace": 5}}, f"{_VM}.metadata.namespace"),
        ({"metadata": {"namespace": "Bad_NS"}}, f"{_VM}.metadata.namespace"),
        ({"spec": {"template": "x"}}, f"{_VM}.spec.template"),
        ({"spec": {"template": {"metadata": "x"}}}, f"{_VM}.spec.template.metadata"),
        ({"spec": {"template": {"metadata": {"labels": "x"}}}}, f"{_VM}.spec.template.metadata.labels"),
        ({"spec": {"dataVolumeTemplates": "x"}}, f"{_VM}.spec.dataVolumeTemplates"),
        ({"spec": {"dataVolumeTemplates": ["x"]}}, f"{_VM}.spec.dataVolumeTemplates[0]"),
        ({"spec": {"running": "yes"}}, f"{_VM}.spec.running"),
        ({"spec": {"template": {"spec": "x"}}}, _INNER),
        *(({"spec": {"template": {"spec": inner}}}, f"{_INNER}.{field}") for inner, field in _INNER_CASES),
    ],
)
def test_a_part_of_the_wrong_type_is_refused_by_its_field(template: Json, field: str) -> None:
    (cause,) = validate_machine(machine(virtualMachineTemplate=template), None)
    assert cause.field == field
    assert cause.message.startswith("Invalid value: ")


def test_parts_that_are_null_or_unknown_are_left_to_the_infrastructure_cluster() -> None:
    inner: Json = {"domain": None, "networks": None, "volumes": [], "somethingNew": "x"}
    spec = {"virtualMachineTemplate": {"metadata": None, "spec": {"template": {"metadata": None, "spec": inner}}}}
    assert validate_machine(machine(**spec), None) == []


def test_metadata_of_a_service_template_has_the_right_types() -> None:
    wrong = {"spec": {"controlPlaneServiceTemplate": {"metadata": {"labels": "x", "annotations": []}}}}
    fields = [each.field for each in validate_cluster(wrong, None)]
    at = "spec.controlPlaneServiceTemplate.metadata"
    assert fields == [f"{at}.labels", f"{at}.annotations"]


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1", "::1", "224.0.0.1", "169.254.1.1", "fe80::1"])
def test_an_endpoint_that_no_other_machine_reaches_is_refused(host: str) -> None:
    (cause,) = validate_cluster({"spec": {"controlPlaneEndpoint": {"host": host, "port": 6443}}}, None)
    assert cause.field == "spec.controlPlaneEndpoint.host"
    assert "can't be reached from other machines" in cause.message


def test_objects_of_before_a_rule_existed_can_be_labelled_and_deleted() -> None:
    cluster: Json = {"metadata": {"name": "c"}, "spec": {"controlPlaneEndpoint": {"host": "127.0.0.1"}}}
    wrong = vm({"domain": "x"})
    for validate, old in (
        (validate_cluster, cluster),
        (validate_machine, machine(**wrong)),
        (validate_template, template(wrong)),
    ):
        assert validate(old, None) != []
        labelled = copy.deepcopy(old)
        labelled["metadata"]["labels"] = {"a": "b"}
        assert validate(labelled, old) == []


def provisioned(host: str, port: int = 6443, *, ready: bool = True) -> Json:
    spec = {"controlPlaneEndpoint": {"host": host, "port": port}} if host else {}
    return {"metadata": {"name": "c"}, "spec": spec, "status": {"initialization": {"provisioned": ready}}}


def test_the_endpoint_of_a_provisioned_cluster_cannot_be_changed() -> None:
    old = provisioned("10.40.0.200")
    for changed in (provisioned("10.40.0.201"), provisioned("10.40.0.200", 7443)):
        (cause,) = validate_cluster(changed, old)
        assert (cause.reason, cause.field) == ("FieldValueForbidden", "spec.controlPlaneEndpoint")
        assert "name 10.40.0.200:6443" in cause.message


def test_an_endpoint_can_be_chosen_before_the_cluster_is_provisioned_and_filled_in_again() -> None:
    assert validate_cluster(provisioned("10.40.0.201"), provisioned("10.40.0.200", ready=False)) == []
    assert validate_cluster(provisioned("10.40.0.200"), provisioned("")) == []
    assert validate_cluster(provisioned(""), provisioned("10.40.0.200")) == []
    assert validate_cluster(provisioned("10.40.0.200", 0), provisioned("10.40.0.200")) == []
