"""What brings what back: a change of an object makes the loops look at all those that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from homeport.sim.harvester.controller.claim import BY_CLAIM
from homeport.sim.harvester.controller.instance import Instances
from homeport.sim.harvester.controller.launcher import Launchers, is_launcher
from homeport.sim.harvester.controller.template import claim_names
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.guest import machine_id
from homeport.sim.harvester.kind import (
    CLAIM,
    DATA_VOLUME,
    IMAGE,
    KEY_PAIR,
    NODE,
    POD,
    STORAGE_CLASS,
    VM,
    VMI,
    VOLUME,
    Json,
)
from homeport.sim.harvester.loop import Loop
from homeport.sim.harvester.object import key_of, status_of


class Wakes:
    def __init__(self, core: Core, loops: Mapping[str, Loop], launchers: Launchers, instances: Instances) -> None:
        self._core = core
        self._loops = loops
        self._launchers = launchers
        self._instances = instances

    def index(self) -> None:
        mirror = self._core.mirror
        mirror.index(VOLUME, BY_CLAIM, _claim_of)
        for kind in (VM, VMI):
            mirror.index(kind, "claim", _claims_used)

    def connect(self, *between: Callable[[], None]) -> None:
        """`between`: what others connect after our own, and before Nodes offer their room again."""
        mirror = self._core.mirror
        mirror.on(POD, self._launchers.occupancy.follow)
        mirror.on(IMAGE, lambda key, new, old: self._image_changed(key))
        mirror.on(KEY_PAIR, lambda key, new, old: self._loops["keypair"].add(key))
        mirror.on(CLAIM, lambda key, new, old: self._claim_changed(key))
        mirror.on(VOLUME, self._bound_volume_changed)
        mirror.on(DATA_VOLUME, lambda key, new, old: self._volume_changed(key))
        mirror.on(STORAGE_CLASS, lambda key, new, old: self._class_changed())
        mirror.on(VM, self._machine_changed)
        mirror.on(VMI, self._instance_changed)
        mirror.on(POD, self._pod_changed)
        for connect in between:
            connect()
        mirror.on(NODE, lambda key, new, old: self._offer_room())

    def _image_changed(self, key: str) -> None:
        self._loops["image"].add(key)
        for vm in self._core.mirror.all(VM):  # one may have waited for this image
            if not status_of(vm).get("ready"):
                self._loops["machine"].add(str(key_of(vm)))

    def _claim_changed(self, key: str) -> None:
        self._loops["claim"].add(key)
        self._loops["volume"].add(key)
        self._wake_users(key)

    def _bound_volume_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        """One that is there when the simulator starts may have lost its claim in the moment before it ended."""
        if new is not None and old is None:
            for claim in _claim_of(new):
                self._loops["claim"].add(claim)

    def _volume_changed(self, key: str) -> None:
        self._loops["volume"].add(key)
        self._wake_users(key)

    def _wake_users(self, key: str) -> None:
        for vm in self._core.mirror.by(VM, "claim", key):
            self._loops["machine"].add(str(key_of(vm)))
        for vmi in self._core.mirror.by(VMI, "claim", key):
            self._loops["instance"].add(str(key_of(vmi)))
            pod = self._launchers.of(vmi)
            if pod is not None and not pod["spec"].get("nodeName"):
                self._loops["launcher"].add(str(key_of(pod)))

    def _class_changed(self) -> None:
        for claim in self._core.mirror.all(CLAIM):
            if status_of(claim).get("phase") != "Bound":
                self._loops["claim"].add(str(key_of(claim)))

    def _machine_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        self._loops["machine"].add(key)
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._core.guests.removed(old["metadata"]["uid"])
            for interface in _interfaces(old["spec"]["template"]["spec"]):
                self._core.leases.free(interface.get("macAddress", ""))

    def _instance_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        self._loops["instance"].add(key)
        self._loops["machine"].add(key)
        if old is not None and (new is None or new["metadata"]["uid"] != old["metadata"]["uid"]):
            self._instance_gone(old)

    def _instance_gone(self, vmi: Json) -> None:
        boot = self._instances.boots.pop(vmi["metadata"]["uid"], None)
        machine = machine_id(vmi, self._instances.room.system(vmi))
        if machine == vmi["metadata"]["uid"]:
            self._core.guests.removed(machine)
        elif boot is not None:
            self._core.guests.powered_off(machine, crashed=True)  # its object went by force

    def _pod_changed(self, key: str, new: Json | None, old: Json | None) -> None:
        pod = new or old
        if pod is None or not is_launcher(pod):
            return
        self._loops["launcher"].add(key)
        owner = (pod["metadata"].get("ownerReferences") or [{}])[0].get("name", "")
        self._loops["instance"].add(f"{pod['metadata']['namespace']}/{owner}")
        if new is None:
            self._offer_room()

    def _offer_room(self) -> None:
        for key in self._launchers.waiting:
            self._loops["launcher"].add(key)


def _interfaces(spec: Json) -> list[Json]:
    return (spec["domain"].get("devices") or {}).get("interfaces") or []


def _claim_of(volume: Json) -> list[str]:
    claim = volume["spec"].get("claimRef")
    return [f"{claim['namespace']}/{claim['name']}"] if claim else []


def _claims_used(obj: Json) -> list[str]:
    return [f"{obj['metadata']['namespace']}/{name}" for name in claim_names(obj)]
