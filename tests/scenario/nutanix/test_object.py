"""Nutanix kinds in the API: what is refused at once, what is understood, and what they tell."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from conformance.provider.nutanix import open_nutanix
from conformance.provider.provider_plane import NAME, SECRET, condition, key, provider_plane
from homeport.api.nutanix.v1beta1 import (
    NutanixCluster,
    NutanixFailureDomain,
    NutanixMachine,
    NutanixMachineTemplate,
)
from homeport.client.errors import Invalid
from homeport.client.protocol import MergePatch
from homeport.providers.nutanix.install import FORMER_FINALIZERS
from homeport.runtime.testing import virtual
from present import present
from scenario.nutanix import manifest

V4 = partial(open_nutanix, version="v4")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"memorySize": "1Gi"}, "spec.template.spec.memorySize"),
        ({"memorySize": "lots"}, "quantity"),
        ({"systemDiskSize": "10Gi"}, "spec.template.spec.systemDiskSize"),
        ({"vcpuSockets": 0}, "vcpuSockets"),
        ({"bootType": "bios"}, "bootType"),
        ({"image": None}, "exactly one of image and imageLookup"),
        ({"imageLookup": {"baseOS": "ubuntu"}}, "exactly one of image and imageLookup"),
        ({"image": {"type": "uuid", "uuid": "abc"}}, "is not a valid UUID"),
        ({"image": {"type": "name"}}, "spec.template.spec.image.name"),
        ({"subnet": ["a", "a"]}, "Duplicate"),
        ({"additionalCategories": [{"key": "a"}]}, "additionalCategories[0].value"),
        ({"gpus": [{"type": "name"}]}, "gpus[0].name"),
        ({"dataDisks": [{"diskSize": "1Mi"}]}, "dataDisks[0].diskSize"),
        (
            {
                "dataDisks": [
                    {"diskSize": "1Gi", "deviceProperties": {"adapterType": "SCSI", "deviceIndex": 10}},
                    {"diskSize": "1Gi", "deviceProperties": {"adapterType": "SCSI", "deviceIndex": 10}},
                ]
            },
            "index '10' is already in use",
        ),
    ],
)
def test_a_template_that_can_not_work_is_refused_and_the_field_named(change: dict[str, Any], words: str) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(V4, start=False) as g:
            spec = {k: v for k, v in {**manifest.machine_spec(), **change}.items() if v is not None}
            with pytest.raises(Invalid) as refused:
                await g.plane.have(manifest.template("t", spec))
            assert words in str(refused.value)

    run()


@virtual
async def test_the_spellings_of_guides_are_understood() -> None:
    async with provider_plane(V4, start=False) as g:
        spec = manifest.machine_spec(
            image="ubuntu-22.04-kube-v1.28.0",
            cluster="00061f7f-0002-4a02-8002-7cc255860002",
            subnet=None,
            subnets=["vm-network"],
            categories=[{"key": "Environment", "value": "Production"}],
            project={"name": "kubernetes-project"},
            memorySize=8 << 30,
        )
        await g.plane.have(manifest.template("t", {k: v for k, v in spec.items() if v is not None}))
        kept = (await g.client.get(NutanixMachineTemplate, key("t"))).spec.template.spec
        image, cluster, project = present(kept.image), present(kept.cluster), present(kept.project)
        assert (image.type, image.name) == ("name", "ubuntu-22.04-kube-v1.28.0")
        assert (cluster.type, cluster.uuid) == ("uuid", "00061f7f-0002-4a02-8002-7cc255860002")
        assert [each.name for each in kept.subnet] == ["vm-network"]
        assert [(each.key, each.value) for each in kept.additional_categories] == [("Environment", "Production")]
        assert (project.type, project.name) == ("name", "kubernetes-project")


@virtual
async def test_a_template_in_use_can_not_be_changed_under_its_machines() -> None:
    async with provider_plane(V4, start=False) as g:
        await g.plane.have(manifest.template("t", manifest.machine_spec()))
        body = {"spec": {"template": {"spec": {"vcpuSockets": 8}}}}
        with pytest.raises(Invalid, match="create a template with another name"):
            await g.client.patch(NutanixMachineTemplate, key("t"), MergePatch(body))


@virtual
async def test_templates_tell_what_a_machine_of_theirs_would_have() -> None:
    async with provider_plane(V4) as g:
        gpus = [{"type": "name", "name": "Tesla T4 compute"}]
        await g.plane.have(manifest.template("t", manifest.machine_spec("16Gi", gpus=gpus)))
        found = await g.plane.until(NutanixMachineTemplate, key("t"), lambda t: bool(t.status.capacity))
        assert found.status.capacity == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}


@virtual
async def test_owner_references_without_a_uid_get_it_where_the_owner_exists() -> None:
    async with provider_plane(V4, start=False) as g:
        await g.plane.have(manifest.cluster("here"))
        for name in ("here", "nowhere"):
            body = manifest.infra_cluster(name)
            owner = {"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": name}
            body["metadata"]["ownerReferences"] = [owner]
            await g.plane.have(body)
        found = await g.client.get(NutanixCluster, key("here"))
        assert found.metadata.owner_references[0].uid
        assert (await g.client.get(NutanixCluster, key("nowhere"))).metadata.owner_references == []


@virtual
async def test_a_failure_domain_in_use_stays_and_says_by_whom() -> None:
    async with provider_plane(V4) as g:
        domain = {"prismElementCluster": "nutanix-cluster-1", "subnets": ["vm-network"]}
        meta = {"name": "fd-1", "namespace": "default"}
        await g.plane.have(
            {"apiVersion": manifest.INFRA, "kind": "NutanixFailureDomain", "metadata": meta, "spec": domain}
        )
        body = manifest.infra_cluster("one", controlPlaneFailureDomains=[{"name": "fd-1"}])
        await g.plane.have(body)
        await g.plane.until(NutanixFailureDomain, key("fd-1"), lambda d: bool(d.metadata.finalizers))
        await g.client.delete(NutanixFailureDomain, key("fd-1"))
        text = await g.says(NutanixFailureDomain, "fd-1", "FailureDomainInUse", type_="FailureDomainSafeForDeletion")
        assert "NutanixCluster one" in text
        await g.client.delete(NutanixCluster, key("one"))
        await g.plane.gone(NutanixFailureDomain, key("fd-1"), 60)


@virtual
async def test_a_provider_id_that_a_template_filled_in_means_nothing() -> None:
    async with provider_plane(V4) as g:
        await g.cluster()
        plain = g.vendor.infra_machine
        body = plain("a")
        body["spec"]["providerID"] = "nutanix://one-m1"
        g.vendor.infra_machine = lambda name: body  # type: ignore[method-assign]
        await g.machine("a")
        (machine,) = await g.ready("a")
        assert machine.spec.provider_id == f"nutanix://{g.found('a').id}"
        found = await g.client.get(NutanixMachine, key("a"))
        assert condition(found, "VMProvisioned")["reason"] == "Provisioned"


@virtual
async def test_finalizers_by_which_older_versions_held_an_object_do_not_keep_it_for_ever() -> None:
    async with provider_plane(V4) as g:
        former = sorted(FORMER_FINALIZERS)
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.stop()
        secret = g.vendor.credentials()["metadata"]["name"]
        held: list[tuple[Any, str]] = [(g.vendor.machine_kind, "a"), (g.vendor.cluster_kind, NAME), (SECRET, secret)]
        for kind, name in held:
            fitting = [each for each in former if kind is not SECRET or "/" in each]
            await g.client.patch(kind, key(name), MergePatch({"metadata": {"finalizers": fitting}}))
        await g.delete("a")
        await g.delete_cluster()
        await g.client.delete(SECRET, key(secret))
        await g.start()
        for kind, name in held:
            await g.plane.gone(kind, key(name), 600)
        assert g.vendor.machines() == []


@pytest.mark.parametrize("host", ["10.0.0.300", "10.0.0", "10.0.0.1.2", "https://10.0.0.1", "10.0.0.1:6443"])
def test_an_endpoint_that_is_neither_address_nor_name_is_refused(host: str) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(V4, start=False) as g:
            body = g.vendor.infra_cluster(NAME)
            body["spec"]["controlPlaneEndpoint"] = {"host": host, "port": 6443}
            with pytest.raises(Invalid, match=r"spec\.controlPlaneEndpoint\.host"):
                await g.plane.have(body)

    run()
