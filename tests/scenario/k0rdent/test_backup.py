"""ManagementBackup: once, on a schedule, with retention; and planes that can't."""

from __future__ import annotations

import asyncio
from pathlib import Path

from homeport.api.k0rdent.v1beta1 import ManagementBackup
from homeport.capi.component import Setup
from homeport.capi.environment import BackupError, Environment
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.platforms.k0rdent.backup.reconciler import install
from homeport.platforms.k0rdent.definition import definitions
from homeport.runtime.testing import Plane, establish, plane, virtual
from scenario.k0rdent.stage import k0rdent


class Shelf:
    """Keeps names instead of archives."""

    folder = Path("/var/lib/homeport/backups")

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.broken = ""

    async def names(self) -> list[str]:
        return list(self.kept)

    async def write(self, name: str) -> None:
        if self.broken:
            raise BackupError(self.broken)
        self.kept.append(name)

    async def delete(self, name: str) -> None:
        self.kept.remove(name)


async def ready(p: Plane, name: str, *, true: bool = True) -> ManagementBackup:
    def fits(obj: ManagementBackup) -> bool:
        found = condition.find(obj.status.conditions, "Ready") or {}
        current = found.get("observedGeneration") == obj.metadata.generation
        return current and found.get("status") == str(true)

    found: ManagementBackup = await p.until(ManagementBackup, Key("", name), fits, 60.0, what=f"Ready {true}")
    return found


@virtual
async def test_backups_are_made_when_they_are_due_and_old_ones_go() -> None:
    shelf = Shelf()
    async with plane() as p:
        await establish(p.client, *definitions())
        install(Setup(p.manager, Environment(p.client, backups=shelf), ()))
        await p.start()
        await p.have(k0rdent("ManagementBackup", "once", {}, namespace=""))
        once = await ready(p, "once")
        assert once.status.last_backup is not None
        assert (once.status.last_backup.phase, once.status.next_attempt) == ("Completed", None)
        assert [once.status.last_backup_name] == shelf.kept

        await p.have(k0rdent("ManagementBackup", "daily", {"schedule": "@daily"}, namespace=""))
        assert (await ready(p, "daily")).status.next_attempt
        await asyncio.sleep(40 * 86_400.0)
        mine = [each for each in shelf.kept if each.startswith("daily-")]
        assert 29 <= len(mine) <= 31
        assert len(set(mine)) == len(mine)
        assert [each for each in shelf.kept if each.startswith("once-")] == [once.status.last_backup_name]

        shelf.broken = "no space left"
        await p.have(k0rdent("ManagementBackup", "late", {}, namespace=""))
        assert (await ready(p, "late", true=False)).status.error == "no space left"
        shelf.broken = ""
        await ready(p, "late")
        await p.client.patch(ManagementBackup, Key("", "late"), MergePatch({"spec": {"schedule": "never"}}))
        assert "spec.schedule" in (await ready(p, "late", true=False)).status.error


@virtual
async def test_controllers_on_a_cluster_of_others_say_what_to_use_instead() -> None:
    async with plane() as p:
        await establish(p.client, *definitions())
        install(Setup(p.manager, Environment(p.client), ()))
        await p.start()
        await p.have(k0rdent("ManagementBackup", "once", {}, namespace=""))
        assert "for example with Velero" in (await ready(p, "once", true=False)).status.error
