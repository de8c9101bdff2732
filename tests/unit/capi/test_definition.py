"""CustomResourceDefinitions of Cluster API: what they say, that they install, that objects live in every version."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from homeport.api.bootstrap import v1beta2 as bootstrap
from homeport.api.cluster import v1beta1 as cluster_v1beta1
from homeport.api.cluster import v1beta2 as cluster
from homeport.api.controlplane import v1beta2 as controlplane
from homeport.api.meta import ObjectMeta
from homeport.capi.conversion import register
from homeport.capi.definition.inventory import is_inventory
from homeport.capi.definition.kind import definitions
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import yaml
from homeport.machinery.crd.check import check
from homeport.runtime.testing import Plane, establish, plane
from homeport.runtime.webhook.embedded import install
from homeport.runtime.webhook.hook import Hooks

ROOT = Path(__file__).resolve().parents[3]
NAMES = [crd["metadata"]["name"] for crd in definitions()]
CONTRACTED = [crd for crd in definitions() if not is_inventory(crd)]
REF = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachine", "name": "m"}


@pytest.mark.parametrize("crd", definitions(), ids=NAMES)
def test_a_definition_is_sound(crd: dict[str, Any]) -> None:
    stored = [version["name"] for version in crd["spec"]["versions"] if version["storage"]]
    crd["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored}
    crd["spec"].setdefault("conversion", {"strategy": "None"})
    assert check(crd) == []


@pytest.mark.parametrize("crd", CONTRACTED, ids=[crd["metadata"]["name"] for crd in CONTRACTED])
def test_a_definition_carries_the_contract_labels(crd: dict[str, Any]) -> None:
    contracts = {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"}
    assert contracts.items() <= crd["metadata"]["labels"].items()
    assert [version["name"] for version in crd["spec"]["versions"] if version["storage"]] == ["v1beta2"]


def test_a_definition_says_whose_it_is() -> None:
    by_name = {crd["metadata"]["name"]: crd["metadata"]["labels"] for crd in CONTRACTED}
    assert all(labels["clusterctl.cluster.x-k8s.io"] == "" for labels in by_name.values())
    owners = {name: labels["cluster.x-k8s.io/provider"] for name, labels in by_name.items()}
    assert owners["machines.cluster.x-k8s.io"] == owners["ipaddresses.ipam.cluster.x-k8s.io"] == "cluster-api"
    assert owners["kubeadmconfigs.bootstrap.cluster.x-k8s.io"] == "bootstrap-kubeadm"
    assert owners["kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"] == "control-plane-kubeadm"


def test_generated_files_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("gen_crds", ROOT / "tools/gen_crds.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.stale(tool.render()) == [], "run make gen"
    assert tool.PACKED.read_bytes() == tool.pack(), "run make gen"
    assert tool.INVENTORY.read_text() == tool.inventory(), "run make gen"


def served(p: Plane) -> Plane:
    hooks = Hooks()
    register(hooks)
    install(hooks, p.server)
    return p


async def test_all_kinds_install_and_are_served() -> None:
    async with plane() as p:
        served(p)
        await establish(p.client, *definitions())
        kinds = {kind.kind for kind in p.server.catalog.group("cluster.x-k8s.io")}
        assert {"Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "ClusterClass"} <= kinds


async def test_an_object_lives_in_both_versions() -> None:
    async with plane() as p:
        served(p)
        await establish(p.client, *(crd for crd in definitions() if crd["spec"]["names"]["kind"] == "Machine"))
        old = cluster_v1beta1.Machine.__resource__
        key = Key("default", "m")
        await p.have(
            {
                "apiVersion": "cluster.x-k8s.io/v1beta1",
                "kind": "Machine",
                "metadata": {"name": "m"},
                "spec": {
                    "clusterName": "c",
                    "bootstrap": {"dataSecretName": "s"},
                    "nodeDrainTimeout": "10m",
                    "infrastructureRef": {
                        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha4",
                        "kind": "DevMachine",
                        "name": "m",
                    },
                },
            }
        )
        new = await p.client.get(cluster.Machine, key)
        assert new.spec.deletion.node_drain_timeout_seconds == 600
        assert new.spec.infrastructure_ref == cluster.ContractRef(
            api_group="infrastructure.cluster.x-k8s.io", kind="DevMachine", name="m"
        )
        await p.client.patch(cluster.Machine, key, MergePatch({"spec": {"minReadySeconds": 7}}))
        shown = await p.client.get(old, key)
        assert shown["spec"]["nodeDrainTimeout"] == "10m0s"
        assert shown["spec"]["infrastructureRef"]["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1alpha4"
        await p.client.patch(old, key, MergePatch({"spec": {"nodeDrainTimeout": "20m"}}))
        again = await p.client.get(cluster.Machine, key)
        assert again.spec.deletion.node_drain_timeout_seconds == 1200
        assert again.spec.min_ready_seconds == 7


async def test_applying_an_older_manifest_again_changes_nothing() -> None:
    manifest = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {
            "clusterName": "c",
            "bootstrap": {"dataSecretName": "s"},
            "nodeDrainTimeout": "10m",
            "infrastructureRef": {"apiVersion": f"{REF['apiGroup']}/v1beta1", "kind": "DevMachine", "name": "m"},
        },
    }
    async with plane() as p:
        served(p)
        await establish(p.client, *(crd for crd in definitions() if crd["spec"]["names"]["kind"] == "Machine"))
        kind, gitops = cluster_v1beta1.Machine.__resource__, Write(field_manager="gitops")
        first = await p.client.apply(manifest, gitops, kind=kind)
        again = await p.client.apply(manifest, gitops, kind=kind)
        assert again.resource_version == first.resource_version
        stored = await p.client.get(cluster.Machine, Key("default", "m"))
        assert stored.metadata.annotations == {}


async def test_typed_objects_are_written_without_unset_parts() -> None:
    async with plane() as p:
        served(p)
        wanted = ("Machine", "KubeadmConfig", "KubeadmControlPlane")
        await establish(p.client, *(crd for crd in definitions() if crd["spec"]["names"]["kind"] in wanted))
        ref = cluster.ContractRef(api_group="infrastructure.cluster.x-k8s.io", kind="DevMachineTemplate", name="m")
        machine = await p.client.create(
            cluster.Machine(
                metadata=ObjectMeta(name="m", namespace="default"),
                spec=cluster.MachineSpec(
                    cluster_name="c", bootstrap=cluster.Bootstrap(data_secret_name="s"), infrastructure_ref=ref
                ),
            )
        )
        assert machine.spec.cluster_name == "c"
        join = bootstrap.JoinConfiguration(control_plane=bootstrap.JoinControlPlane())
        config = await p.client.create(
            bootstrap.KubeadmConfig(
                metadata=ObjectMeta(name="m", namespace="default"),
                spec=bootstrap.KubeadmConfigSpec(join_configuration=join),
            )
        )
        assert config.spec.join_configuration.control_plane is not None
        template = controlplane.KubeadmControlPlaneMachineTemplateSpec(infrastructure_ref=ref)
        plane_ = await p.client.create(
            controlplane.KubeadmControlPlane(
                metadata=ObjectMeta(name="m", namespace="default"),
                spec=controlplane.KubeadmControlPlaneSpec(
                    replicas=3,
                    version="v1.33.0",
                    machine_template=controlplane.KubeadmControlPlaneMachineTemplate(spec=template),
                ),
            )
        )
        assert plane_.spec.replicas == 3


REFUSED = [
    ({"clusterName": ""}, "spec.clusterName"),
    ({"infrastructureRef": {**REF, "kind": "not a kind"}}, "spec.infrastructureRef.kind"),
    ({"minReadySeconds": -1}, "spec.minReadySeconds"),
    ({"readinessGates": []}, "spec.readinessGates"),
    ({"deletion": {}}, "spec.deletion"),
    ({"taints": [{"key": "a", "effect": "Never", "propagation": "Always"}]}, "spec.taints[0].effect"),
]


@pytest.mark.parametrize(("change", "field"), REFUSED, ids=[field for _, field in REFUSED])
async def test_limits_of_the_types_are_enforced(change: dict[str, Any], field: str) -> None:
    async with plane() as p:
        served(p)
        await establish(p.client, *(crd for crd in definitions() if crd["spec"]["names"]["kind"] == "Machine"))
        spec = {"clusterName": "c", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": REF, **change}
        with pytest.raises(Invalid) as refused:
            await p.have(
                {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": "m"}, "spec": spec}
            )
        assert field in {cause.field for cause in refused.value.causes}


# -- against the definitions of the upstream project ------------------------------------------------------------------

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")


def plain(schema: Any) -> Any:
    """A schema without words: descriptions and messages are our own."""
    if isinstance(schema, list):
        return [plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: plain(part) for name, part in schema.items() if not _is_word(name, part)}
    if isinstance(kept.get("required"), list):
        # The metadata is there in any case, whether a schema asks for it or not.
        kept["required"] = sorted(name for name in kept["required"] if name != "metadata")
    return kept


def _is_word(name: str, part: Any) -> bool:
    return name in ("description", "message") and isinstance(part, str)


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream CRDs")
@pytest.mark.parametrize("crd", definitions(), ids=NAMES)
def test_a_definition_is_the_upstream_one_but_for_its_words(crd: dict[str, Any]) -> None:
    names = crd["spec"]["names"]
    if crd["spec"]["group"] == "clusterctl.cluster.x-k8s.io":
        pytest.skip("clusterctl brings its inventory along; the definitions of Cluster API do not contain it")
    [path] = Path(REFERENCE).rglob(f"cluster-api/{crd['spec']['group']}_{names['plural']}.yaml")
    theirs = plain(yaml.load(path.read_text())["spec"])
    ours = plain(crd["spec"])
    for version in (*theirs["versions"], *ours["versions"]):
        version.setdefault("subresources", {})
    assert ours == theirs
