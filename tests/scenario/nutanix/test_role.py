"""A user of Prism Central with the permissions that the documentation lists: they are enough, and none is too much."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.runtime.testing import virtual
from homeport.sim.prism.entity import Disk, User, VolumeDisk, VolumeGroup
from homeport.sim.prism.permission import permission_of
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "nutanix.md"
NAME = "one"


def documented(version: str) -> set[str]:
    """From the table of permissions: what it is about, verbs with v4, verbs with v3, what for."""
    section = PAGE.read_text().partition("## Permissions in Prism Central")[2].partition("\n## ")[0]
    found: set[str] = set()
    for row in re.findall(r"^\| `([a-z-]+)` \|([^|]*)\|([^|]*)\|", section, re.MULTILINE):
        verbs = row[1] if version == "v4" else row[2]
        found |= {f"{verb} {row[0]}" for verb in re.findall(r"`([a-z-]+)`", verbs)}
    return found


def used(site: Site) -> set[str]:
    found = set()
    for entry in site.prism.journal:
        route, _, _ = site.prism.router.find(entry.method, entry.path)
        if route is not None and entry.status != 403:
            found.add(permission_of(entry.method, route.template, reads=route.handler.reads))
    return found - {""}


def employ(site: Site, permissions: set[str]) -> None:
    """There is a user who may do just that."""
    may = tuple(sorted(permissions))
    site.prism.world.users.put(User(ext_id="clerk", name="clerk", passwords=("clerk",), permissions=may))


def everything(version: str) -> list[dict[str, Any]]:
    """A cluster that uses all that there is."""
    container = {"type": "name", "name": "default-container-11"}
    disk = {"diskSize": "10Gi", "storageConfig": {"diskMode": "Standard", "storageContainer": container}}
    spec = manifest.machine_spec(
        project="kubernetes-project", additionalCategories=[{"key": "AppType", "value": "Kubernetes"}]
    )
    if version == "v4":  # older releases do without
        spec |= {"dataDisks": [disk], "gpus": [{"type": "name", "name": "Tesla T4 compute"}]}
    objects = [
        each
        for each in manifest.cluster_objects(NAME, 1, 0)
        if each["kind"] not in ("Secret", "NutanixMachineTemplate")
    ]
    return [*objects, manifest.template(f"{NAME}-cp-mt", spec), manifest.secret("clerk", user="clerk")]


def attach_volume(site: Site) -> None:
    core = site.prism.core
    (vm,) = site.vms()
    disk = VolumeDisk(ext_id=core.new_id(), size_bytes=1 << 30)
    group = VolumeGroup(ext_id=core.new_id(), name="pvc", cluster=vm.cluster, disks=(disk,), attached=(vm.ext_id,))
    core.put(core.world.volume_groups, group)
    more = Disk(ext_id=core.new_id(), bus="SCSI", index=20, volume_group=group.ext_id)
    core.put(core.world.vms, vm, disks=(*vm.disks, more))


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_the_permissions_of_the_documentation_are_enough_and_none_is_too_much(version: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site(v4=version == "v4") as site:
            employ(site, documented(version))
            await site.have(*everything(version))
            await site.running(NAME, 1)
            if version == "v4":
                attach_volume(site)
            await site.delete(Cluster, NAME)
            await site.gone(Cluster, NAME)
            assert not [f"{entry.method} {entry.path}" for entry in site.prism.journal if entry.status == 403]
            # Not every release of v3 has to be asked twice to have a VM that is on.
            optional = {"update vms"} if version == "v3" else set()
            assert documented(version) - optional <= used(site) <= documented(version)

    run()


@virtual
async def test_a_permission_that_is_missing_is_reported_with_whose_it_should_be() -> None:
    async with nutanix_site() as site:
        employ(site, documented("v4") - {"create categories"})
        await site.have(*everything("v4"))
        words = ("category", "clerk", "grant the role", "Secret default/nutanix-credentials")
        await site.condition(NutanixCluster, NAME, "ClusterCategoryCreated", "False", *words)
        employ(site, documented("v4"))
        await site.running(NAME, 1)
