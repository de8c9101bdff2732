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
