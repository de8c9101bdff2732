"""An import that could touch what is not ours, or that would replace a Machine, is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.importer.operation import Import, Request
from homeport.app.importer.source import Refused
from homeport.capi.remote import pki
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.prism.core import replace
from scenario.importer.forgotten import NAMESPACE, NEW, Forgotten, forgotten_on_nutanix, write_file
from scenario.nutanix import manifest


async def refused(found: Forgotten) -> str:
    """The reasons. Nothing was written, here or at Prism Central."""
    before, versions = found.site.backup(), {vm.ext_id: vm.version for vm in found.site.vms()}
    with pytest.raises(Refused) as error:
        await found.apply()
    assert found.site.backup() == before
    assert {vm.ext_id: vm.version for vm in found.site.vms()} == versions
    return str(error.value)


def read_files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def other_keys(folder: Path, *purposes: pki.Purpose) -> None:
    made = await pki.generate(purposes, now=1767225600.0)
    for purpose, pair in made.items():
        certificate, key = pki.files(purpose, str(folder))
        write_file(Path(certificate), pair.certificate)
        write_file(Path(key), pair.key)


@virtual
async def test_vms_and_keys_that_are_not_the_clusters_are_refused(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 1) as found:
        core = found.site.prism.core
        first, second = found.site.vms()
        files = read_files(tmp_path)

        # The mark of another plane.
        core.put(core.world.vms, first, attributes=("homeport-machine:5d1c7a52-0a4e-4a63-9c3d-2f6f1f0c8f11",))
        text = await refused(found)
        assert f"VM {first.name} ({first.ext_id}) belongs to others: it carries the mark homeport-machine:5d1c" in text
        core.put(core.world.vms, replace(core.world.vms.get(first.ext_id), attributes=()))

        # A restored copy of a VM, which reads the same UUID from its firmware.
        copy = replace(
            first, ext_id="7c9e6679-7425-40de-944b-e07fc1f90ae7", bios_uuid=first.ext_id, power="OFF", nics=()
        )
        core.put(core.world.vms, copy)
        assert f"2 VMs match it ({first.name}" in await refused(found)
        core.world.vms.drop(copy.ext_id)

        # A VM that is off.
        core.put(core.world.vms, core.world.vms.get(second.ext_id), power="OFF")
        assert f"VM {second.name} ({second.ext_id}) is powered off: power it on first" in await refused(found)
        core.put(core.world.vms, core.world.vms.get(second.ext_id), power="ON")

        # Keys of another cluster: each of them by itself.
        for purpose, words in (
            ("ca", "ca.crt of --pki is not the CA of the cluster"),
            ("sa", "sa.pub of --pki does not verify tokens of the cluster"),
            ("etcd", "etcd can't be asked with etcd/ca.key of --pki"),
        ):
            await other_keys(tmp_path, purpose)  # type: ignore[arg-type]
            assert words in await refused(found)
            for path, content in files.items():
                write_file(path, content)
        (tmp_path / "ca.key").unlink()
        assert f"{tmp_path / 'ca.key'} does not exist: copy it from /etc/kubernetes/pki" in await refused(found)
        write_file(tmp_path / "ca.key", files[tmp_path / "ca.key"])

        # Another account, which does not see the VMs: here, none exists any more.
        for vm in (first, second):
            core.world.vms.drop(vm.ext_id)
        text = await refused(found)
        assert text.count("no VM has its providerID nutanix://") == 2
        for vm in (first, second):
            core.put(core.world.vms, vm)

        # Put right, it is imported.
        await found.apply()
        await found.site.running(NEW, 1, 1)


@virtual
async def test_a_kubeconfig_of_something_else_and_a_name_in_use_are_refused(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 1, 0) as found:
        request = Request(Key(NAMESPACE, NEW), found.credentials, tmp_path)
        wrong = Import(found.site.client, found.site.client, request, found.site.clock, found.site.dial)
        with pytest.raises(
            Refused, match="no ConfigMap kube-system/kubeadm-config: only clusters that kubeadm created"
        ):
            await wrong.plan()
        await found.site.have(manifest.cluster(NEW))
        with pytest.raises(Refused, match="Cluster default/old-iron already exists and was not imported"):
            await found.importing().state()
        with pytest.raises(Refused, match="Cluster old-iron already exists and was not created by this import"):
            await found.plan()


@virtual
async def test_a_dry_run_shows_everything_and_changes_nothing(tmp_path: Path) -> None:
    async with forgotten_on_nutanix(tmp_path, 3, 2) as found:
        before, versions = found.site.backup(), {vm.ext_id: vm.version for vm in found.site.vms()}
        plan = await found.plan()
        assert {each.candidate.id for each in plan.matches} == set(versions)
        assert {each.proof for each in plan.matches} == {"providerID and systemUUID"}
        assert [plan.owner_of(each) for each in plan.matches] == [
            *[f"KubeadmControlPlane {NEW}-kcp"] * 3,
            *[f"MachineDeployment {NEW}-md-0"] * 2,
        ]
        kinds = [body["kind"] for _, body in plan.objects]
        assert kinds[0] == "Cluster"
        assert {kind: kinds.count(kind) for kind in ("Machine", "NutanixMachine", "KubeadmConfig", "Secret")} == {
            "Machine": 5,
            "NutanixMachine": 5,
            "KubeadmConfig": 5,
            "Secret": 5,
        }
        assert found.site.backup() == before
        assert {vm.ext_id: vm.version for vm in found.site.vms()} == versions
        assert await found.site.list(Cluster) == []
