"""VirtualMachineInstances: from the first look at their volumes to a guest that runs and reports its addresses, and to
their end.

    ""/Pending  volumes are missing or not filled yet
    Scheduling  the launcher Pod waits for a node, or for what it mounts
    Scheduled   the Pod runs, the VM is about to
    Running     the guest is on; its agent reports addresses a while later
    Succeeded   the guest ended      Failed  it was lost
"""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv6Address

from homeport.sim.engine.fault import AddressChange, AddressLate, AddressLoss, AgentSilence, Crash, NoBoot
from homeport.sim.engine.guest import Machine
from homeport.sim.harvester.controller.launcher import Launchers
from homeport.sim.harvester.controller.machine import CONTROLLER_FINALIZER, INSTANCE_FINALIZER
from homeport.sim.harvester.controller.template import claim_names
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.guest import Guestroom, Nic, machine_id
from homeport.sim.harvester.kind import CLAIM, DATA_VOLUME, NODE, POD, VM, VMI, Json
from homeport.sim.harvester.lease import POD_NETWORK
from homeport.sim.harvester.object import (
    condition,
    controlled_by,
    finalizers,
    is_true,
    key_of,
    leaving,
    status_of,
    with_condition,
    without_condition,
)

FINAL = ("Succeeded", "Failed")


@dataclass(slots=True)
class Boot:
    """An instance that runs: what its guest has, and what is to happen to it."""

    machine: Machine
    nics: list[Nic]
    addresses: dict[str, list[str]]  # by MAC
    agent: bool  # whether a guest agent runs in it
    booted: bool
    reports_at: float | None  # the agent speaks from then on; None: never
    crash_at: float | None = None
    readdress: list[tuple[float, bool]] = field(default_factory=list)  # (when, whether it is a loss)


class Instances:
    def __init__(self, core: Core, launchers: Launchers, room: Guestroom) -> None:
        self._core = core
        self._launchers = launchers
        self.room = room
        self.boots: dict[str, Boot] = {}  # by UID

    async def settle(self, key: str) -> float | None:
        vmi = self._core.mirror.get(VMI, key)
        if vmi is None:
            return None
        if leaving(vmi):
            return await self._end(vmi)
        draft = Draft(vmi, self._core.stamp)
        after = await self._advance(vmi, draft)
        await draft.write(self._core)
        if draft.phase == "Running" and not leaving(vmi):
            after = await self._live(key)
        return after

    async def _advance(self, vmi: Json, draft: Draft) -> float | None:
        """As far as it goes now; what took no time is written at once."""
        if draft.phase in ("", "Pending"):
            if not self._volumes_ready(vmi, draft):
                draft.become("Pending")
                return None  # volumes bring it back
            if self._launchers.of(vmi) is None:
                await self._launchers.create(vmi)
            draft.become("Scheduling")
        if draft.phase == "Scheduling":
            self._schedule(vmi, draft)
        if draft.phase == "Scheduled":
            since = draft.since("Scheduled")
            wait = self._core.seconds_until(since, self._core.pace.start)
            if wait > 0:
                return wait
            await self._power_on(vmi, draft)
        elif draft.phase == "Running" and self._pod_is_gone(vmi):
            self._lose(vmi, draft)
        return None

    # -- getting there -------------------------------------------------------------------------------------------

    def _volumes_ready(self, vmi: Json, draft: Draft) -> bool:
        core, namespace = self._core, vmi["metadata"]["namespace"]
        for name in claim_names(vmi):
            key = f"{namespace}/{name}"
            volume = core.mirror.get(DATA_VOLUME, key)
            if volume is not None and status_of(volume).get("phase") != "Succeeded":
                draft.condition("DataVolumesReady", "False", reason="NotAllDVsReady")
                draft.drop("PodScheduled")
                draft.drop("Synchronized")
                return False
            if core.mirror.get(CLAIM, key) is None:
                text = f"failed to render launch manifest: didn't find PVC {name}"
                draft.condition("PodScheduled", "False", reason="Unschedulable", message=text)
                draft.condition("Synchronized", "False", reason="FailedPvcNotFound", message=text)
                return False
        draft.drop("Synchronized")
        draft.drop("PodScheduled")
        if condition(vmi, "DataVolumesReady"):
            draft.condition("DataVolumesReady", "True", reason="AllDVsReady", message="All of the VMI's DVs are bound")
        return True

    def _schedule(self, vmi: Json, draft: Draft) -> None:
        pod = self._launchers.of(vmi)
        if pod is None or leaving(pod) or status_of(pod).get("phase") in FINAL:
            draft.become("Failed")
            return
        draft.status["activePods"] = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "")}
        scheduled = condition(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            draft.condition(
                "PodScheduled", "False", reason=scheduled.get("reason", ""), message=scheduled.get("message", "")
            )
        else:
            draft.drop("PodScheduled")
        if not is_true(pod, "Ready"):
            text = "virt-launcher pod has not yet been scheduled" if not pod["spec"].get("nodeName") else ""
            draft.condition(
                "Ready", "False", reason="GuestNotRunning", message=text or "Guest VM is not reported as running"
            )
            return
        draft.labels["kubevirt.io/nodeName"] = pod["spec"]["nodeName"]
        draft.status["nodeName"] = pod["spec"]["nodeName"]
        draft.status["qosClass"] = status_of(pod).get("qosClass", "Burstable")
        draft.become("Scheduled")

    def _pod_is_gone(self, vmi: Json) -> bool:
        pod = self._launchers.of(vmi)
        return pod is None or leaving(pod) or status_of(pod).get("phase") in FINAL

    # -- running -------------------------------------------------------------------------------------------------

    async def _power_on(self, vmi: Json, draft: Draft) -> None:
        core = self._core
        boot = await self._boot(vmi)
        self.boots[vmi["metadata"]["uid"]] = boot
        draft.become("Running")
        draft.condition("Ready", "True")
        migratable = all(self._shared(vmi, name) for name in claim_names(vmi))
        if migratable:
            draft.condition("LiveMigratable", "True")
            draft.condition("StorageLiveMigratable", "True")
        else:
            text = "cannot migrate VMI: PVC is not shared, live migration requires that all PVCs must be shared"
            draft.condition("LiveMigratable", "False", reason="DisksNotLiveMigratable", message=text)
        draft.status["migrationMethod"] = "BlockMigration" if not migratable else "LiveMigration"
        draft.status["guestOSInfo"] = {}
        draft.status["volumeStatus"] = [
            {"name": each["name"], "target": f"vd{chr(ord('a') + number)}"}
            for number, each in enumerate(vmi["spec"].get("volumes") or ())
        ]
        self._report(vmi, boot, draft)
        if boot.booted:
            core.guests.powered_on(boot.machine)
        core.tell(vmi, VMI, "Started", "VirtualMachineInstance started.")

    def _shared(self, vmi: Json, name: str) -> bool:
        claim = self._core.mirror.get(CLAIM, f"{vmi['metadata']['namespace']}/{name}")
        return claim is not None and "ReadWriteMany" in claim["spec"].get("accessModes", ())

    async def _boot(self, vmi: Json) -> Boot:
        core, now = self._core, self._core.clock.now()
        subject = core.subject(vmi, "vm")
        found = await self.room.furnish(vmi)
        late = [each.seconds for _, each in core.faults.strike(subject, AddressLate)]
        late += [each.seconds for _, each in core.faults.strike(subject, AgentSilence)]
        reports: float | None = now + core.pace.agent
        if late:
            reports = None if late[0] is None else now + late[0]
        booted = not core.faults.strike(subject, NoBoot)
        crash = core.faults.strike(subject, Crash)
        moves = [(now + each.seconds, False) for _, each in core.faults.strike(subject, AddressChange)]
        moves += [(now + each.seconds, True) for _, each in core.faults.strike(subject, AddressLoss)]
        return Boot(
            found.machine,
            found.nics,
            found.addresses,
            agent=found.system.agent and bool(found.system.name),
            booted=booted,
            reports_at=reports if booted else None,
            crash_at=now + crash[0][1].seconds if crash else None,
            readdress=sorted(moves),
        )

    async def _live(self, key: str) -> float | None:
        """What happens to a VM that runs: its agent speaks, and faults strike."""
        core = self._core
        vmi = core.mirror.get(VMI, key)
        if vmi is None or status_of(vmi).get("phase") != "Running":
            return None
        boot = self.boots.get(vmi["metadata"]["uid"])
        if boot is None:
            return None
        now = core.clock.now()
        if boot.crash_at is not None and now >= boot.crash_at:
            await self._crash(vmi)
            return None
        self._readdress(boot, now)
        draft = Draft(vmi, core.stamp)
        self._report(vmi, boot, draft)
        await draft.write(core)
        coming = [boot.crash_at, *(when for when, _ in boot.readdress)]
        if boot.agent and not is_true(vmi, "AgentConnected"):
            coming.append(boot.reports_at)
        due = min((each for each in coming if each is not None and each > now), default=None)
        return None if due is None else due - now

    def _report(self, vmi: Json, boot: Boot, draft: Draft) -> None:
        """What is known of the guest: little, until its agent speaks."""
        speaks = boot.agent and boot.reports_at is not None and self._core.clock.now() >= boot.reports_at
        if speaks:
            draft.condition("AgentConnected", "True")
            draft.status["guestOSInfo"] = _os_info(boot)
        draft.status["interfaces"] = self._interfaces(vmi, boot, reported=speaks)

    def _readdress(self, boot: Boot, now: float) -> None:
        while boot.readdress and boot.readdress[0][0] <= now:
            _, lost = boot.readdress.pop(0)
            for nic in boot.nics:
                if nic.mac in boot.addresses:
                    new = "" if lost or nic.vlan is None else self._core.leases.change(nic.vlan, nic.mac)
                    boot.addresses[nic.mac] = [new] if new else []
            every = tuple(address for each in boot.addresses.values() for address in each)
            self._core.guests.readdressed(boot.machine.ext_id, every)

    def _interfaces(self, vmi: Json, boot: Boot, *, reported: bool) -> list[Json]:
        found = []
        for number, nic in enumerate(boot.nics):
            entry: Json = {"name": nic.name, "mac": nic.mac, "queueCount": 1, "linkState": "up"}
            multus = "multus-status" if nic.vlan != POD_NETWORK else ""
            sources = ["domain", *(["guest-agent"] if reported else []), *([multus] if multus else [])]
            entry["infoSource"] = ", ".join(sources)
            entry["podInterfaceName"] = f"pod{nic.mac.replace(':', '')[-11:]}" if multus else "eth0"
            addresses = boot.addresses.get(nic.mac) or []
            if addresses and (reported or nic.vlan == POD_NETWORK):
                entry["ipAddress"] = addresses[0]
                entry["ipAddresses"] = [*addresses, *([_link_local(nic.mac)] if reported else [])]
            if reported:
                entry["interfaceName"] = f"enp{number + 1}s0"
            found.append(entry)
        return found

    async def _crash(self, vmi: Json) -> None:
        self._core.guests.powered_off(self.machine_of(vmi), crashed=True)
        self.boots.pop(vmi["metadata"]["uid"], None)
        await self._finish(vmi, "Failed")

    def _lose(self, vmi: Json, draft: Draft) -> None:
        """Its Pod was deleted: the guest is asked to end, and ends. On a node that does not answer, it is lost."""
        node = self._core.mirror.get(NODE, str(status_of(vmi).get("nodeName") or ""))
        unreachable = node is None or condition(node, "Ready").get("status") == "Unknown"
        failed = unreachable or self._launchers.of(vmi) is None
        self._core.guests.powered_off(self.machine_of(vmi), crashed=failed)
        self.boots.pop(vmi["metadata"]["uid"], None)
        draft.become("Failed" if failed else "Succeeded")
        draft.condition("Ready", "False", reason="PodTerminating", message="virt-launcher pod is terminating")
        draft.drop("AgentConnected")

    async def reboot(self, vmi: Json) -> None:
        """The guest starts again where it is; its agent is silent until it is up."""
        self._core.guests.powered_off(self.machine_of(vmi), crashed=False)
        boot = self.boots[vmi["metadata"]["uid"]] = await self._boot(vmi)
        draft = Draft(vmi, self._core.stamp)
        draft.drop("AgentConnected")
        draft.status["interfaces"] = self._interfaces(vmi, boot, reported=False)
        await draft.write(self._core)
        if boot.booted:
            self._core.guests.powered_on(boot.machine)

    def machine_of(self, vmi: Json) -> str:
        return machine_id(vmi, self.room.system(vmi))

    # -- the end -------------------------------------------------------------------------------------------------

    async def _end(self, vmi: Json) -> float | None:
        core, status = self._core, status_of(vmi)
        phase = status.get("phase", "")
        if phase not in FINAL:
            if phase == "Running":
                wait = self._shutdown_left(vmi)
                if wait > 0:
                    return wait
                core.guests.powered_off(self.machine_of(vmi), crashed=False)
                self.boots.pop(vmi["metadata"]["uid"], None)
            await self._finish(vmi, "Succeeded" if phase == "Running" else "Failed")
            return 0.0
        for pod in core.mirror.by(POD, "instance", vmi["metadata"]["uid"]):
            await core.delete(POD, pod, grace_seconds=0)
        drop = {INSTANCE_FINALIZER}
        owner = controlled_by(vmi, VM)
        vm = core.mirror.get(VM, key_of(vmi))
        if not owner or vm is None or vm["metadata"]["uid"] != owner["uid"]:
            drop.add(CONTROLLER_FINALIZER)
        kept = [each for each in finalizers(vmi) if each not in drop]
        if kept != finalizers(vmi):
            await core.patch(VMI, vmi, {"metadata": {"finalizers": kept}})
        return None

    def _shutdown_left(self, vmi: Json) -> float:
        """A guest ends when asked, or when its grace period is over."""
        core = self._core
        grace = float(vmi["spec"].get("terminationGracePeriodSeconds", 30))
        return core.seconds_until(vmi["metadata"]["deletionTimestamp"], min(core.pace.shutdown, grace))

    async def _finish(self, vmi: Json, phase: str) -> None:
        draft = Draft(vmi, self._core.stamp)
        draft.become(phase)
        draft.condition("Ready", "False", reason="PodTerminating", message="virt-launcher pod is terminating")
        draft.drop("AgentConnected")
        await draft.write(self._core)
        for pod in self._core.mirror.by(POD, "instance", vmi["metadata"]["uid"]):
            await self._core.delete(POD, pod, grace_seconds=0)

    async def wake(self, vmi: Json) -> None:
        """The simulator was restarted: a VM that ran goes on."""
        for each in status_of(vmi).get("interfaces") or ():
            nic = next((nic for nic in self.room.nics(vmi) if nic.mac == each.get("mac")), None)
            if nic is not None and nic.vlan is not None and each.get("ipAddress"):
                self._core.leases.claim(nic.vlan, nic.mac, each["ipAddress"])
        boot = await self._boot(vmi)
        self.boots[vmi["metadata"]["uid"]] = boot
        if boot.booted:
            self._core.guests.powered_on(boot.machine)


class Draft:
    """The next state of an instance, written at once. These have no status subresource."""

    def __init__(self, vmi: Json, now: str) -> None:
        self._vmi = vmi
        self._now = now
        self.status: Json = {**status_of(vmi)}
        self.labels: dict[str, str] = {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    def become(self, phase: str) -> None:
        if phase != self.phase:
            self.status["phase"] = phase
            entry = {"phase": phase, "phaseTransitionTimestamp": self._now}
            self.status["phaseTransitionTimestamps"] = [*(self.status.get("phaseTransitionTimestamps") or ()), entry]

    def since(self, phase: str) -> str:
        times = self.status.get("phaseTransitionTimestamps") or ()
        return next((each["phaseTransitionTimestamp"] for each in times if each["phase"] == phase), self._now)

    def condition(self, name: str, status: str, **more: str) -> None:
        self.status["conditions"] = with_condition(self.status.get("conditions") or (), self._now, name, status, **more)

    def drop(self, name: str) -> None:
        if "conditions" in self.status:
            self.status["conditions"] = without_condition(self.status["conditions"], name)

    async def write(self, core: Core) -> None:
        if self.status == status_of(self._vmi) and not self.labels:
            return
        patch: Json = {"status": self.status}
        if self.labels:
            patch["metadata"] = {"labels": self.labels}
        await core.patch(VMI, self._vmi, patch)


def _os_info(boot: Boot) -> Json:
    image = boot.machine.image
    return {"id": boot.machine.image_os or "linux", "name": image, "prettyName": image, "kernelRelease": "6.12.0"}


def _link_local(mac: str) -> str:
    octets = bytes.fromhex(mac.replace(":", ""))
    own = bytes([octets[0] ^ 2, *octets[1:3], 0xFF, 0xFE, *octets[3:]])
    return str(IPv6Address(b"\xfe\x80" + bytes(6) + own))
