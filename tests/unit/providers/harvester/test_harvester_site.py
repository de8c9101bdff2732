"""A ProviderConfig's part for Harvester and its Secret, in every spelling, become one site."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachineTemplate
from homeport.capi.platform import ClusterRequest, ExtraDisk, Origin, Shape
from homeport.infra.error import Misconfigured
from homeport.providers.harvester.platform import PLATFORM
from homeport.providers.harvester.site import HarvesterSite, read_site

ORIGIN = Origin("spec.harvester", "Secret butler-system/harvester-kubeconfig")
GUIDE: dict[str, Any] = {
    "credentialsRef": {"name": "harvester-kubeconfig", "key": "kubeconfig"},
    "namespace": "default",
    "networkName": "default/workloads",
    "imageName": "default/talos-1.9",
    "storageClassName": "harvester-longhorn",
}
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "h", "cluster": {"server": "https://10.20.0.10:6443"}}],
    "users": [{"name": "u", "user": {"token": "very-secret"}}],
    "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u"}}],
    "current-context": "c",
}
SECRET = {"kubeconfig": json.dumps(KUBECONFIG)}


def site(part: dict[str, Any], secret: dict[str, str] | None = None) -> HarvesterSite:
    return read_site(part, SECRET if secret is None else secret, ORIGIN)


def test_the_guides_spelling_is_read() -> None:
    made = site(GUIDE)
    assert (made.namespace, made.networks, made.image) == ("default", ["default/workloads"], "default/talos-1.9")
    assert (made.storage_class, made.server) == ("harvester-longhorn", "https://10.20.0.10:6443")
    assert "very-secret" not in repr(made)


def test_names_without_a_namespace_are_in_the_one_of_the_machines() -> None:
    made = site({"namespace": "vms", "networkName": "workloads", "imageName": "talos-1.9"})
    assert (made.networks, made.image) == (["vms/workloads"], "vms/talos-1.9")
    assert site({"networkName": "workloads"}).networks == ["default/workloads"]


def test_an_endpoint_replaces_the_server_of_the_kubeconfig() -> None:
    assert (
        site({**GUIDE, "endpoint": "https://harvester.example.com:6443"}).server == "https://harvester.example.com:6443"
    )


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], list[str]]] = {
    "no network": ({"imageName": "x"}, SECRET, ["spec.harvester.networkName: name the VM network"]),
    "not a name": ({"networkName": "a/b/c"}, SECRET, ["spec.harvester.networkName", "'a/b/c' is not the name"]),
    "no kubeconfig": (GUIDE, {"config": "x"}, ["harvester-kubeconfig has no key kubeconfig (its keys: config)"]),
    "not a kubeconfig": (
        GUIDE,
        {"kubeconfig": "very-secret"},
        ["Secret butler-system/harvester-kubeconfig, key kubec"],
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_what_can_not_be_used_is_named_and_no_secret_is_shown(case: str) -> None:
    part, secret, words = REFUSED[case]
    with pytest.raises(Misconfigured) as error:
        site(part, secret)
    assert [word for word in words if word not in error.value.message] == []
    assert "very-secret" not in error.value.message


def test_faults_need_no_secret() -> None:
    assert [each.field for each in PLATFORM.faults({})] == ["networkName"]
    assert not PLATFORM.faults(GUIDE)


# -- Cluster API objects ---------------------------------------------------------------------------------------------


def test_a_cluster_gets_a_secret_and_a_kubevirt_cluster() -> None:
    request = ClusterRequest(name="one", namespace="one-1234")
    secret, infra = PLATFORM.cluster_objects(site(GUIDE), request)
    assert secret["stringData"] == {**SECRET, "namespace": "default"}
    made = msgspec.convert(infra, KubevirtCluster)
    assert made.spec.infra_cluster_secret_ref is not None
    assert made.spec.infra_cluster_secret_ref.name == secret["metadata"]["name"]
    assert "controlPlaneEndpoint" not in infra["spec"]


def test_a_machine_template_has_the_shape() -> None:
    shape = Shape(cpu=4, memory="8Gi", disk="40Gi", image="default/rocky-9-cloud", extra_disks=(ExtraDisk("20Gi"),))
    template = PLATFORM.machine_template(site(GUIDE), shape)
    spec = msgspec.convert(template, KubevirtMachineTemplate).spec.template.spec
    inner = spec.virtual_machine_template.spec["template"]["spec"]
    assert inner["domain"] == {"cpu": {"cores": 4}, "memory": {"guest": "8Gi"}}
    assert inner["networks"][0]["multus"] == {"networkName": "default/workloads"}
    assert spec.boot_disk is not None
    assert (spec.boot_disk.image, spec.boot_disk.size) == (
        "default/rocky-9-cloud",
        "40Gi",
    )
    assert spec.data_disks[0].storage_class_name == "harvester-longhorn"
    assert spec.virtual_machine_template.metadata == {"namespace": "default"}
