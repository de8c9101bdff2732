"""Disks of volume groups."""

from __future__ import annotations

from homeport.sim.prism.prism import Prism
from unit.sim.prism.prism_caller import Caller

GROUPS = "/api/volumes/v4.3/config/volume-groups"


async def test_a_disk_of_a_volume_group_grows_and_never_shrinks() -> None:
    call = Caller(Prism())
    cluster = next(each for each in call.prism.world.clusters if not each.central)
    body = {"name": "data", "clusterReference": cluster.ext_id, "disks": [{"diskSizeBytes": 1 << 30}]}
    assert (await call("POST", GROUPS, body)).status == 202
    (group,) = call.prism.world.volume_groups
    path = f"{GROUPS}/{group.ext_id}/disks/{group.disks[0].ext_id}"
    assert (await call("PUT", path, {"diskSizeBytes": 2 << 30})).status == 412
    tag = (await call("GET", path)).headers["ETag"]
    assert (await call("PUT", path, {"diskSizeBytes": 2 << 30}, if_match=tag)).status == 202
    (group,) = call.prism.world.volume_groups
    assert [disk.size_bytes for disk in group.disks] == [2 << 30]
    tag = (await call("GET", path)).headers["ETag"]
    refused = await call("PUT", path, {"diskSizeBytes": 1 << 30}, if_match=tag)
    assert refused.status == 400
    assert "is smaller than the disk" in str(refused.body)
    assert (
        await call("PUT", f"{GROUPS}/{group.ext_id}/disks/absent", {"diskSizeBytes": 1}, if_match=tag)
    ).status == 404
