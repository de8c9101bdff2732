from __future__ import annotations

from dataclasses import replace
from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.platforms.butler.tenant.blueprint import AddonRequest, Blueprint, ControlPlane, WorkerGroup
from homeport.platforms.butler.tenant.name import labels_of, source_of, tenant_namespace
from homeport.platforms.butler.tenant.render import render_addon, render_objects

MACHINE = {"apiVersion": "acme.dev/v1", "kind": "AcmeMachineTemplate", "spec": {"template": {"spec": {"cpu": 4}}}}
INFRA = {"apiVersion": "acme.dev/v1", "kind": "AcmeCluster", "metadata": {"name": "shop"}, "spec": {}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop-acme"}, "stringData": {"a": "b"}}


def blueprint(**more: Any) -> Blueprint:
    group = WorkerGroup(
        name="workers", replicas=2, version="v1.33.1", os="rocky", image="rocky-9-cloud", machine=MACHINE
    )
    given: dict[str, Any] = {
        "source": Key("team-a", "shop"),
        "namespace": "shop-12345678",
        "cluster_kind": Resource("acme.dev", "v1", "AcmeCluster", "acmeclusters"),
        "template_kind": Resource("acme.dev", "v1", "AcmeMachineTemplate", "acmemachinetemplates"),
        "infra": (SECRET, INFRA),
        "control_plane": ControlPlane(version="v1.33.1"),
        "workers": (group,),
        "addons": (AddonRequest(name="cni", addon="cilium"),),
    }
    return Blueprint(**{**given, **more})


def by_kind(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in objects}


def test_what_is_referred_to_comes_before_the_cluster_and_everything_is_labelled() -> None:
    objects = render_objects(blueprint())
    assert [each["kind"] for each in objects] == [
        "Secret",
        "AcmeCluster",
        "StewardControlPlane",
        "AcmeMachineTemplate",
        "KubeadmConfigTemplate",
        "MachineDeployment",
        "Cluster",
    ]
    for each in objects:
        assert each["metadata"]["namespace"] == "shop-12345678"
        assert source_of(each["metadata"]["labels"]) == Key("team-a", "shop")
    refs = by_kind(objects)["Cluster"]["spec"]
    assert refs["infrastructureRef"] == {"apiGroup": "acme.dev", "kind": "AcmeCluster", "name": "shop"}
    assert refs["controlPlaneRef"]["kind"] == "StewardControlPlane"


def test_machines_of_another_size_come_from_another_template_to_which_the_workers_roll() -> None:
    one = by_kind(render_objects(blueprint()))
    group = blueprint().workers[0]
    bigger = {**MACHINE, "spec": {"template": {"spec": {"cpu": 8}}}}
    two = by_kind(render_objects(blueprint(workers=(replace(group, machine=bigger),))))
    old, new = (each["AcmeMachineTemplate"]["metadata"]["name"] for each in (one, two))
    assert old != new
    template = two["MachineDeployment"]["spec"]["template"]["spec"]
    assert template["infrastructureRef"]["name"] == new
    assert one["KubeadmConfigTemplate"]["metadata"]["name"] == two["KubeadmConfigTemplate"]["metadata"]["name"]


def test_scaling_changes_no_template() -> None:
    group = blueprint().workers[0]
    one = by_kind(render_objects(blueprint()))
    two = by_kind(render_objects(blueprint(workers=(replace(group, replicas=5),))))
    assert two["MachineDeployment"]["spec"].pop("replicas") == 5
    one["MachineDeployment"]["spec"].pop("replicas")
    assert one == two


def test_kube_proxy_is_left_out_where_the_network_replaces_it() -> None:
    with_cilium = by_kind(render_objects(blueprint()))["StewardControlPlane"]["spec"]["addons"]
    assert "kubeProxy" not in with_cilium
    other = (AddonRequest(name="cni", addon="flannel"),)
    assert by_kind(render_objects(blueprint(addons=other)))["StewardControlPlane"]["spec"]["addons"]["kubeProxy"] == {}
    machines = ControlPlane(version="v1.33.1", hosted=False, replicas=3, machine=MACHINE)
    made = by_kind(render_objects(blueprint(control_plane=machines)))["KubeadmControlPlane"]["spec"]
    assert made["kubeadmConfigSpec"]["initConfiguration"]["skipPhases"] == ["addon/kube-proxy"]
    assert made["replicas"] == 3


def test_a_rocky_image_without_kubernetes_gets_the_packages_of_the_very_version() -> None:
    config = by_kind(render_objects(blueprint()))["KubeadmConfigTemplate"]["spec"]["template"]["spec"]
    files = {each["path"]: each["content"] for each in config["files"]}
    assert "/v1.33/rpm/" in files["/etc/yum.repos.d/kubernetes.repo"]
    (install,) = (each for each in config["preKubeadmCommands"] if "dnf install" in each)
    assert install.startswith("command -v kubeadm ||")
    assert "kubelet-1.33.1 kubeadm-1.33.1 kubectl-1.33.1" in install


def test_labels_and_taints_of_a_group_reach_its_nodes() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    group = replace(blueprint().workers[0], labels={"tier": "gpu", "a": "b"}, taints=(taint,))
    config = by_kind(render_objects(blueprint(workers=(group,))))["KubeadmConfigTemplate"]["spec"]["template"]["spec"]
    node = config["joinConfiguration"]["nodeRegistration"]
    assert {"name": "node-labels", "value": "a=b,tier=gpu"} in node["kubeletExtraArgs"]
    assert node["taints"] == [taint]


def test_the_address_and_the_names_of_the_api_server_are_passed_on() -> None:
    plane = ControlPlane(version="v1.33.1", address="10.1.1.5", cert_sans=("shop.example.com",), data_store="fast")
    spec = by_kind(render_objects(blueprint(control_plane=plane)))["StewardControlPlane"]["spec"]
    network = {"serviceType": "LoadBalancer", "serviceAddress": "10.1.1.5", "certSANs": ["shop.example.com"]}
    assert (spec["network"], spec["dataStoreName"]) == (network, "fast")


def test_an_add_on_goes_with_its_cluster() -> None:
    owner = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "shop", "uid": "u"}
    request = AddonRequest(name="cni", addon="cilium", version="1.18.11", values={"a": 1}, parameters={"hubble": True})
    made = render_addon(blueprint(), request, owner)
    assert made["metadata"]["name"] == "shop-cilium"
    assert made["metadata"]["ownerReferences"] == [owner]
    assert made["spec"] == {
        "clusterName": "shop",
        "addon": "cilium",
        "version": "1.18.11",
        "parameters": {"hubble": True},
        "values": {"a": 1},
    }


def test_the_namespace_of_a_tenant_is_a_valid_name_of_its_own() -> None:
    assert tenant_namespace("shop", "12345678-abcd") == "shop-12345678"
    assert len(tenant_namespace("s" * 63, "12345678-abcd")) == 63


def test_an_object_of_somebody_else_is_not_taken_for_that_of_a_tenant() -> None:
    labels = labels_of(Key("a", "b"), "team")
    assert source_of(labels) == Key("a", "b")
    assert source_of({**labels, "app.kubernetes.io/managed-by": "helm"}) is None
