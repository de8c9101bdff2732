from __future__ import annotations

from homeport.api.meta import Unstructured
from homeport.capi.object.template import clone, cloned_from

TEMPLATE = Unstructured(
    {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachineTemplate",
        "metadata": {"name": "t", "labels": {"of": "template"}},
        "spec": {"template": {"metadata": {"labels": {"a": "template", "b": "b"}}, "spec": {"disks": [{"size": 1}]}}},
    }
)


def test_a_clone_has_the_kind_the_spec_and_says_where_it_is_from() -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet", "name": "s", "uid": "u"}
    made = clone(
        TEMPLATE, name="m", namespace="ns", cluster_name="c", owner=owner, labels={"a": "given"}, annotations={"x": "y"}
    )
    assert made == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachine",
        "metadata": {
            "name": "m",
            "namespace": "ns",
            "labels": {"a": "given", "b": "b", "cluster.x-k8s.io/cluster-name": "c"},
            "annotations": {
                "x": "y",
                "cluster.x-k8s.io/cloned-from-name": "t",
                "cluster.x-k8s.io/cloned-from-groupkind": "NutanixMachineTemplate.infrastructure.cluster.x-k8s.io",
            },
            "ownerReferences": [owner],
        },
        "spec": {"disks": [{"size": 1}]},
    }
    assert cloned_from(made) == ("NutanixMachineTemplate.infrastructure.cluster.x-k8s.io", "t")


def test_a_clone_shares_nothing_with_its_template() -> None:
    made = clone(TEMPLATE, name="m", namespace="ns", cluster_name="c")
    made["spec"]["disks"][0]["size"] = 2
    assert TEMPLATE["spec"]["template"]["spec"]["disks"][0]["size"] == 1
    assert "ownerReferences" not in made["metadata"]
    assert cloned_from({"metadata": {}}) is None
