"""Clusters on Nutanix that somebody else created become Homeport's, and their VMs stay as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.app.discovery.source import NoSource
from homeport.app.importer.account import Credentials
from homeport.app.importer.body import DONE
from homeport.app.importer.operation import Import, Request
from homeport.app.importer.source import Refused
from homeport.app.importer.undo import undo
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError
from homeport.machinery.yaml import load_all
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Status
from scenario.importer.forgotten import NAMESPACE, NEW, Forgotten, forgotten_on_nutanix
from scenario.move.pair import Killed, Mortal
from scenario.nutanix import manifest


def _vms(found: Forgotten) -> dict[str, tuple[object, ...]]:
    """Everything of the VMs but their marks."""
    return {
        vm.ext_id: (vm.name, vm.power, vm.sockets, vm.memory_bytes, vm.disks, vm.nics, vm.powered_at)
        for vm in found.site.vms()
    }


@pytest.mark.parametrize(
    "options", [{"newest_minor": 4}, {"newest_minor": 1}, {"v4": False}], ids=["v4.4", "v4.1", "v3"]
)
@virtual
async def test_a_forgotten_cluster_is_imported_scaled_and_given_back(options: dict[str, Any], tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 2, **options) as found:
        before = _vms(found)
        await found.apply()
        machines = await found.site.running(NEW, 1, 2)
        assert {each.spec.provider_id.rpartition("/")[2] for each in machines} == set(before)
        assert _vms(found) == before
        await found.site.condition(NutanixCluster, NEW, "NoOrphanedMachines", "True")

        await found.site.patch(MachineDeployment, f"{NEW}-md-0", {"spec": {"replicas": 3}})
        await found.site.running(NEW, 1, 3)
        after = _vms(found)
        assert {id_: after.get(id_) for id_ in before} == before
        assert len(after) == 4

        await undo(found.site.client, Key(NAMESPACE, NEW), found.site.clock, found.site.dial, print, dry_run=False)
        assert await found.site.list(Machine) == []
        assert await found.site.list(Cluster) == []
        assert _vms(found) == after
        assert found.site.categories() == []
        assert not any(
            "homeport" in f"{vm.attributes}{vm.description}" for vm in found.site.vms() if vm.ext_id in before
        )


@virtual
async def test_an_imported_cluster_is_upgraded_and_deleted_like_any_other(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 3, 1) as found:
        before = set(_vms(found))
        await found.apply()
        await found.site.running(NEW, 3, 1)
        newer = "v1.29.0"
        spec = manifest.machine_spec(image={"type": "name", "name": f"ubuntu-22.04-kube-{newer}"})
        await found.site.have(manifest.template("newer", spec))
        ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixMachineTemplate", "name": "newer"}
        template = {"spec": {"infrastructureRef": ref}}
        kcp = {"version": newer, "machineTemplate": template}
        await found.site.patch(KubeadmControlPlane, f"{NEW}-kcp", {"spec": kcp})
        await found.site.until(
            KubeadmControlPlane,
            f"{NEW}-kcp",
            lambda k: k.status.version == newer and k.status.up_to_date_replicas == 3 == k.status.replicas,
            timeout=7200,
        )
        spec = {"template": {"spec": {"version": newer, "infrastructureRef": ref}}}
        await found.site.patch(MachineDeployment, f"{NEW}-md-0", {"spec": spec})
        await found.site.until(
            MachineDeployment,
            f"{NEW}-md-0",
            lambda m: (
                m.status.observed_generation == m.metadata.generation
                and m.status.up_to_date_replicas == 1 == m.status.replicas
            ),
            3600,
        )
        machines = await found.site.running(NEW, 3, 1)
        assert {each.status.node_info.kubelet_version for each in machines} == {newer}
        assert before.isdisjoint(_vms(found))
        await found.site.delete(Cluster, NEW)
        await found.site.gone(Cluster, NEW, 3600)
        await found.site.empty(NEW)


@virtual
async def test_a_provider_config_and_a_credential_lead_to_the_same_vms_as_a_secret(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 1) as found:
        await found.site.have(*_accounts())
        vms = {each.candidate.id for each in (await found.plan()).matches}
        assert len(vms) == 2
        config = Credentials("nutanix", provider_config="butler-system/site")
        planned = await found.plan(credentials=config)
        assert {each.candidate.id for each in planned.matches} == vms
        assert [body["kind"] for _, body in planned.objects if body["kind"] == "Secret"]
        credential = Credentials("nutanix", credential="site", address=manifest.ADDRESS)
        assert {each.candidate.id for each in (await found.plan(credentials=credential)).matches} == vms
        for wrong, told in (
            (Credentials("nutanix", provider_config="sito"), "no ProviderConfig 'sito' in namespaces"),
            (Credentials("nutanix", credential="sito", address="a"), "Credential default/sito does not exist"),
            (Credentials("nutanix", secret="sito", address="a"), "Secret default/sito does not exist"),
        ):
            with pytest.raises(NoSource, match=told):
                await found.plan(credentials=wrong)
        with pytest.raises(Refused, match="is of type nutanix, not of harvester"):
            await found.plan(credentials=Credentials("harvester", provider_config="site"))


def _accounts() -> list[dict[str, Any]]:
    return load_all(f"""
apiVersion: v1
kind: Namespace
metadata: {{name: butler-system}}
---
apiVersion: v1
kind: Secret
metadata: {{name: account, namespace: butler-system}}
stringData: {{NUTANIX_USER: admin, NUTANIX_PASSWORD: password}}
---
apiVersion: butler.butlerlabs.dev/v1alpha1
kind: ProviderConfig
metadata: {{name: site, namespace: butler-system}}
spec:
  type: nutanix
  nutanix:
    credentialsRef: {{name: account}}
    prismCentral: {{address: {manifest.ADDRESS}, port: 9440}}
    cluster: {{name: nutanix-cluster-1}}
    subnet: {{name: vm-network}}
    image: {{name: ubuntu-22.04-kube-v1.28.0}}
---
apiVersion: k0rdent.mirantis.com/v1beta1
kind: Credential
metadata: {{name: site, namespace: default}}
spec:
  identityRef: {{apiVersion: v1, kind: Secret, name: nutanix-credentials, namespace: default}}
""")


@virtual
async def test_an_import_that_is_killed_continues(tmp_path: Path) -> None:
    """The process ends after some writes, on the plane or at Prism Central, and the command is repeated."""
    async with forgotten_on_nutanix(tmp_path, 1, 1) as found:
        before, deaths = _vms(found), 0
        while not await _finishes(found, writes=2 + deaths):
            deaths += 1
            assert _vms(found) == before
            if await found.importing().state() == DONE:  # killed after the very last write
                break
            assert (await found.site.get(Cluster, NEW)).spec.paused
        assert deaths >= 4
        await found.importing().until_available(600)
        machines = await found.site.running(NEW, 1, 1)
        assert {each.spec.provider_id.rpartition("/")[2] for each in machines} == set(before)
        assert _vms(found) == before
        assert len({vm.attributes for vm in found.site.vms()}) == 2
        # Once more, it has nothing to do.
        assert await found.importing().state() == DONE


async def _finishes(found: Forgotten, writes: int) -> bool:
    """False: the process was killed after so many writes."""
    left = [1_000_000]
    client: Any = Mortal(found.site.client, left, verbs=frozenset({"create", "patch"}))
    request = Request(Key(NAMESPACE, NEW), found.credentials, found.pki)
    work = Import(client, found.workload, request, found.site.clock, found.site.dial)
    plan = await work.plan()
    importer: Any = Mortal(cast(Any, plan.account.importer), left, verbs=frozenset({"mark"}))
    left[0] = writes
    try:
        await work.apply(replace(plan, account=replace(plan.account, importer=importer)), lambda text: None)
    except Killed:
        return False
    finally:
        await plan.account.importer.close()
    return True


@virtual
async def test_a_vm_whose_category_could_not_be_set_is_still_ours(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 0) as found:
        found.site.fault(Status(500), times=1, route="*associate-categories*")
        with pytest.raises(ProviderError):
            await found.apply()
        [vm] = found.site.vms()
        assert vm.attributes
        assert not vm.categories
        await found.apply()
        await found.site.running(NEW, 1)
        assert found.site.categories() == [NEW]
