"""VirtualMachineInstanceMigrations: a second launcher Pod on another node, to which the VM moves without ending.

Pending > Scheduling (the target Pod waits for a node) > ... > Running (memory is copied) > Succeeded | Failed
"""

from __future__ import annotations

from homeport.sim.harvester.controller.launcher import BY_INSTANCE, Launchers
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import MIGRATION, POD, VMI, Json
from homeport.sim.harvester.object import is_true, key_of, labels, leaving, status_of

JOB = "kubevirt.io/migrationJobUID"
EVACUATION = "kubevirt.io/evacuationMigration"
VMI_NAME = "kubevirt.io/vmi-name"
FINAL = ("Succeeded", "Failed")
_STEPS = ("Scheduled", "PreparingTarget", "TargetReady", "Running")
_MIGRATING = ("LiveMigrate", "LiveMigrateIfPossible")


class Migrations:
    def __init__(self, core: Core, launchers: Launchers) -> None:
        self._core = core
        self._launchers = launchers

    async def settle(self, key: str) -> float | None:
        migration = self._core.mirror.get(MIGRATION, key)
        if migration is None or status_of(migration).get("phase") in FINAL:
            return None
        vmi = self._core.mirror.get(VMI, f"{migration['metadata']['namespace']}/{migration['spec']['vmiName']}")
        if vmi is None or leaving(vmi) or status_of(vmi).get("phase") != "Running":
            await self._fail(migration, None, "the VMI is not running")
            return None
        if not is_true(vmi, "LiveMigratable"):
            await self._fail(migration, None, "the VMI is not live-migratable")
            return None
        return await self._move(migration, vmi)

    async def _move(self, migration: Json, vmi: Json) -> float | None:
        phase = status_of(migration).get("phase", "")
        if phase in ("", "Pending"):
            other = self._other(migration, vmi)
            if other is not None:
                await self._become(migration, "Pending")
                return None  # its end brings this one back
            await self._launchers.create(vmi, away=status_of(vmi).get("nodeName", ""), marks=self._marks(migration))
            await self._become(migration, "Scheduling")
            return None
        pod = self._target(migration, vmi)
        if pod is None or leaving(pod) or status_of(pod).get("phase") in FINAL:
            await self._fail(migration, vmi, "the target Pod is gone")
            return None
        if not is_true(pod, "Ready"):
            return None  # the Pod brings it back
        if phase == "Scheduling":
            await self._start(migration, vmi, pod)
            return None
        return await self._finish(migration, vmi, pod)

    def _marks(self, migration: Json) -> dict[str, str]:
        return {JOB: migration["metadata"]["uid"]}

    def _target(self, migration: Json, vmi: Json) -> Json | None:
        uid = migration["metadata"]["uid"]
        pods = self._core.mirror.by(POD, BY_INSTANCE, vmi["metadata"]["uid"])
        return next((pod for pod in pods if labels(pod).get(JOB) == uid), None)

    def _other(self, migration: Json, vmi: Json) -> Json | None:
        """A VM moves to one place at a time."""
        for each in self.of(vmi):
            if each["metadata"]["uid"] != migration["metadata"]["uid"] and status_of(each).get("phase") not in (
                None, "", "Pending", *FINAL,
            ):  # fmt: skip
                return each
        return None

    def of(self, vmi: Json) -> list[Json]:
        """Migrations of a VM that are not over."""
        return [
            each
            for each in self._core.mirror.all(MIGRATION)
            if each["metadata"]["namespace"] == vmi["metadata"]["namespace"]
            and each["spec"].get("vmiName") == vmi["metadata"]["name"]
            and status_of(each).get("phase") not in FINAL
        ]

    async def _start(self, migration: Json, vmi: Json, pod: Json) -> None:
        state = {
            "migrationUid": migration["metadata"]["uid"],
            "startTimestamp": self._core.stamp,
            "endTimestamp": None,
            "completed": None,
            "failed": None,
            "sourceNode": status_of(vmi).get("nodeName", ""),
            "targetNode": pod["spec"]["nodeName"],
            "targetPod": pod["metadata"]["name"],
            "mode": "PreCopy",
        }
        await self._core.patch(VMI, vmi, {"status": {"migrationState": state}})
        await self._become(migration, *_STEPS, state=_given(state))

    async def _finish(self, migration: Json, vmi: Json, pod: Json) -> float | None:
        core = self._core
        state = status_of(vmi).get("migrationState") or {}
        wait = core.seconds_until(state.get("startTimestamp") or core.stamp, core.pace.migrate)
        if wait > 0:
            return wait
        node = pod["spec"]["nodeName"]
        done = {**state, "completed": True, "endTimestamp": core.stamp}
        status = {
            "nodeName": node,
            "evacuationNodeName": None,
            "migrationState": done,
            "activePods": {pod["metadata"]["uid"]: node},
        }
        await core.patch(VMI, vmi, {"metadata": {"labels": {"kubevirt.io/nodeName": node}}, "status": status})
        for each in core.mirror.by(POD, BY_INSTANCE, vmi["metadata"]["uid"]):
            if each["metadata"]["uid"] != pod["metadata"]["uid"]:
                await core.delete(POD, each, grace_seconds=0)
        core.tell(vmi, VMI, "Migrated", f"The VirtualMachineInstance migrated to node {node}.")
        await self._become(migration, "Succeeded", state=done)
        return None

    async def _fail(self, migration: Json, vmi: Json | None, why: str) -> None:
        if vmi is not None and status_of(vmi).get("migrationState"):
            state = {"completed": True, "failed": True, "failureReason": why, "endTimestamp": self._core.stamp}
            await self._core.patch(VMI, vmi, {"status": {"migrationState": state}})
        self._core.tell(migration, MIGRATION, "FailedMigration", f"Migration failed: {why}.", warning=True)
        await self._become(migration, "Failed")

    async def _become(self, migration: Json, *phases: str, state: Json | None = None) -> None:
        status = status_of(migration)
        if status.get("phase") == phases[-1]:
            return
        now = self._core.stamp
        passed = [{"phase": each, "phaseTransitionTimestamp": now} for each in phases]
        before = status.get("phaseTransitionTimestamps") or []
        patch: Json = {"phase": phases[-1], "phaseTransitionTimestamps": [*before, *passed]}
        if state is not None:
            patch["migrationState"] = state
        await self._core.patch(MIGRATION, migration, {"status": patch}, "status")

    # -- evacuation --------------------------------------------------------------------------------------------

    async def evacuate(self, key: str) -> float | None:
        """A VM that is marked to leave its node gets a migration, unless somebody else takes care of it."""
        vmi = self._core.mirror.get(VMI, key)
        if vmi is None or leaving(vmi):
            return None
        status = status_of(vmi)
        marked = status.get("evacuationNodeName")
        wanted = marked and marked == status.get("nodeName") and vmi["spec"].get("evictionStrategy") in _MIGRATING
        if not wanted or not is_true(vmi, "LiveMigratable") or self.of(vmi):
            return None
        meta = vmi["metadata"]
        made = {
            "metadata": {
                "name": f"kubevirt-evacuation-{self._core.rng.randbytes(3).hex()[:5]}",
                "namespace": meta["namespace"],
                "labels": {VMI_NAME: meta["name"]},
                "annotations": {EVACUATION: marked},
            },
            "spec": {"vmiName": meta["name"]},
        }
        await self._core.create(made, MIGRATION)
        return None

    def instance_key(self, migration: Json) -> str:
        return f"{key_of(migration).namespace}/{migration['spec'].get('vmiName', '')}"


def _given(state: Json) -> Json:
    return {name: value for name, value in state.items() if value is not None}
