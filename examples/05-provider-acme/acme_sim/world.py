"""The state of a simulated Acme: machines, jobs, images, networks. Time passes when somebody looks (`settle`)."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from homeport.runtime.clock import Clock
from homeport.sim.engine import guest
from homeport.sim.engine.fault import AddressLate, TaskFailure, TaskHang
from homeport.sim.engine.guest import Guests, NoGuests
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.network import Pool

Json = dict[str, Any]
State = Literal["creating", "stopped", "running", "deleting"]
NAME = "acme"
TOKEN = "acme-token"  # noqa: S105  (of nothing real)
IMAGES = ("ubuntu-22.04-kube-v1.30.0", "ubuntu-22.04-kube-v1.31.0")


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass
class Machine:
    id: str
    name: str
    memory_gib: int
    image: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    user_data: bytes = b""
    state: State = "creating"
    addresses: tuple[str, ...] = ()
    boots_at: float | None = None  # when a machine that runs gets its address

    def render(self) -> Json:
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "labels": self.labels,
            "addresses": list(self.addresses),
        }


@dataclass
class Job:
    id: str
    operation: Literal["create", "delete"]
    machine: str
    due: float | None  # None: never
    error: str = ""  # it will fail with this message
    state: Literal["running", "done", "failed"] = "running"

    def render(self) -> Json:
        message = self.error if self.state == "failed" else ""
        progress = 0 if self.state == "running" else 100
        return {
            "id": self.id,
            "state": self.state,
            "machine": self.machine,
            "progress": progress,
            "message": message,
        }


class World:
    def __init__(self, clock: Clock, *, guests: Guests | None = None) -> None:
        self.clock = clock
        self.guests = guests or NoGuests()
        self.faults = Injector(clock)
        self.token = TOKEN
        self.images = {f"image-{number}": name for number, name in enumerate(IMAGES)}
        self.networks = {"network-0": "machines"}
        self.memory_gib = 512
        self.job_seconds = 0.0
        self.machines: dict[str, Machine] = {}
        self.jobs: dict[str, Job] = {}
        self.requests: dict[str, str] = {}  # the job of each Idempotency-Key
        self.created: Callable[[Machine], None] = lambda machine: None
        self._pool = Pool(["10.20.0.100-10.20.0.250"])

    @property
    def free_gib(self) -> int:
        return max(self.memory_gib - sum(each.memory_gib for each in self.machines.values()), 0)

    # -- requests ----------------------------------------------------------------------------------------------

    def create(self, body: Json, request_id: str) -> Job:
        known = self.requests.get(request_id)
        if known is not None:
            return self.jobs[known]
        if body["image"] not in self.images or body["network"] not in self.networks:
            raise Refusal(400, "no-such-thing", f"no image {body['image']} or no network {body['network']}")
        if body["memoryGiB"] > self.free_gib:
            raise Refusal(400, "no-capacity", f"no host has {body['memoryGiB']} GiB of memory left")
        image, user_data = self.images[body["image"]], base64.b64decode(body["userData"])
        machine = self.add(body["name"], body["memoryGiB"], body["labels"], image=image, user_data=user_data)
        job = self._job("create", machine)
        self.requests[request_id] = job.id
        return job

    def add(self, name: str, memory_gib: int = 1, labels: Json | None = None, **more: Any) -> Machine:
        machine = Machine(str(uuid.uuid4()), name, memory_gib, labels=labels or {}, **more)
        self.machines[machine.id] = machine
        return machine

    def start(self, machine: Machine) -> None:
        if machine.state != "stopped":
            raise Refusal(409, "wrong-state", f"machine {machine.name} is {machine.state}")
        machine.state, late = "running", self.faults.strike(_subject(machine), AddressLate)
        seconds = late[0][1].seconds if late else 0.0
        machine.boots_at = None if seconds is None else self.clock.monotonic() + seconds

    def stop(self, machine: Machine) -> None:
        machine.state, machine.boots_at = "stopped", None
        self._release(machine)
        self.guests.powered_off(machine.id, crashed=False)

    def delete(self, machine: Machine) -> Job:
        if machine.state in ("creating", "deleting"):
            raise Refusal(409, "wrong-state", f"machine {machine.name} is {machine.state}")
        return self._job("delete", machine)

    def remove(self, machine: Machine) -> None:
        self._release(machine)
        del self.machines[machine.id]
        self.guests.removed(machine.id)

    def _job(self, operation: Literal["create", "delete"], machine: Machine) -> Job:
        due: float | None = self.clock.monotonic() + self.job_seconds
        job = Job(str(uuid.uuid4()), operation, machine.id, due)
        struck = self.faults.on_task(_subject(machine, operation))
        if isinstance(struck, TaskFailure):
            job.error = f"failed: {struck.message}"
        elif isinstance(struck, TaskHang):
            job.due = None if struck.seconds is None else self.clock.monotonic() + struck.seconds
        if operation == "delete" and not job.error:
            machine.state = "deleting"
        self.jobs[job.id] = job
        return job

    # -- time --------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything that is due by now happens."""
        now = self.clock.monotonic()
        for job in self.jobs.values():
            if job.state == "running" and job.due is not None and job.due <= now:
                self._finish(job)
        for machine in self.machines.values():
            if machine.state == "running" and not machine.addresses and _due(machine.boots_at, now):
                self._boot(machine)

    def _finish(self, job: Job) -> None:
        job.state, machine = "failed" if job.error else "done", self.machines.get(job.machine)
        if machine is None:
            return
        if job.operation == "create" and job.error:
            del self.machines[machine.id]
        elif job.operation == "create":
            machine.state = "stopped"
            self.created(machine)
        elif not job.error:
            self.remove(machine)

    def _boot(self, machine: Machine) -> None:
        machine.boots_at = None
        machine.addresses = (self._pool.take(machine.id),)
        meta = {"instance-id": machine.id, "local-hostname": machine.name}
        self.guests.powered_on(
            guest.Machine(
                ext_id=machine.id,
                name=machine.name,
                cluster=NAME,
                image=machine.image,
                image_type="DISK_IMAGE",
                vcpus=2,
                memory_bytes=machine.memory_gib * 2**30,
                user_data=machine.user_data,
                meta_data=json.dumps(meta).encode(),
                addresses=machine.addresses,
                macs=("02:00:" + ":".join(machine.id[number : number + 2] for number in (0, 2, 4, 6)),),
                platform=NAME,
                simulator=NAME,
            )
        )

    def _release(self, machine: Machine) -> None:
        self._pool.free(machine.id)
        machine.addresses = ()

    def change_address(self, machine: Machine, *, lost: bool = False) -> None:
        other = self._pool.take(machine.id)
        self._release(machine)
        if not lost:
            machine.addresses = (self._pool.take(machine.id, other),)
        self.guests.readdressed(machine.id, machine.addresses)


def _due(at: float | None, now: float) -> bool:
    return at is not None and at <= now


def _subject(machine: Machine, operation: str = "") -> Subject:
    return Subject(kind="machine", name=machine.name, ext_id=machine.id, operation=operation)
