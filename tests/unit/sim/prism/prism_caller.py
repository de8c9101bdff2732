"""A client without a network, and a clock that is moved by hand."""

from __future__ import annotations

import base64
import uuid
from typing import Any
from urllib.parse import parse_qsl

import orjson

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.prism import Prism


class HandClock:
    def __init__(self, start: float = 1_767_225_600.0) -> None:
        self.time = start

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += seconds


class Caller:
    """Calls as a client would: credentials, headers, JSON that went over the wire."""

    def __init__(self, prism: Prism, user: str = "admin", password: str = "password") -> None:
        self.prism = prism
        self.user, self.password = user, password
        self.cookies: dict[str, str] = {}

    async def __call__(
        self, method: str, path: str, body: Any = None, *, query: str = "", auth: bool = True, **headers: str
    ) -> Answer:
        given = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        if auth:
            token = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            given["authorization"] = f"Basic {token}"
        answer = await self.prism.respond(
            Call(
                method=method,
                path=path,
                query=dict(parse_qsl(query)),
                raw_query=query,
                headers=given,
                cookies=dict(self.cookies),
                body=None if body is None else orjson.loads(orjson.dumps(body)),
                host="localhost:9440",
            )
        )
        self.cookies.update({name: value for name, (value, _) in answer.cookies.items()})
        if answer.body is not None:
            answer.body = orjson.loads(orjson.dumps(answer.body))
        return answer

    # What most tests begin with.

    def cluster(self, name: str = "nutanix-cluster-1") -> str:
        return next(each.ext_id for each in self.prism.world.clusters if each.name == name)

    def subnet(self, name: str = "vm-network") -> str:
        return next(each.ext_id for each in self.prism.world.subnets if each.name == name)

    def image(self, name: str = "ubuntu-22.04-kube-v1.28.0") -> str:
        return next(each.ext_id for each in self.prism.world.images if each.name == name)

    def vm_body(self, name: str, **more: Any) -> dict[str, Any]:
        source = {"reference": {"$objectType": "vmm.v4.ahv.config.ImageReference", "imageExtId": self.image()}}
        disk = {"$objectType": "vmm.v4.ahv.config.VmDisk", "diskSizeBytes": 20 * 1024**3, "dataSource": source}
        return {
            "name": name,
            "numSockets": 2,
            "numCoresPerSocket": 1,
            "memorySizeBytes": 4 * 1024**3,
            "cluster": {"extId": self.cluster()},
            "disks": [{"backingInfo": disk}],
            "nics": [{"networkInfo": {"subnet": {"extId": self.subnet()}}}],
            **more,
        }

    async def create(self, name: str, **more: Any) -> Answer:
        return await self("POST", VMS, self.vm_body(name, **more), ntnx_request_id=str(uuid.uuid4()))

    async def make(self, name: str, *, on: bool = False, **more: Any) -> str:
        """A machine, made at once; its id."""
        answer = await self.create(name, **more)
        assert answer.status == 202, answer.body
        task = await self.task(answer)
        assert task["status"] == "SUCCEEDED", task
        ext_id: str = task["entitiesAffected"][0]["extId"]
        if on:
            await self.power(ext_id, "power-on")
        return ext_id

    async def task(self, answer: Answer) -> dict[str, Any]:
        found = await self("GET", f"/api/prism/v4.3/config/tasks/{answer.body['data']['extId']}")
        assert found.status == 200, found.body
        view: dict[str, Any] = found.body["data"]
        return view

    async def vm(self, ext_id: str) -> tuple[dict[str, Any], str]:
        found = await self("GET", f"{VMS}/{ext_id}")
        assert found.status == 200, found.body
        return found.body["data"], found.headers["ETag"]

    async def power(self, ext_id: str, action: str) -> dict[str, Any]:
        _, etag = await self.vm(ext_id)
        answer = await self("POST", f"{VMS}/{ext_id}/$actions/{action}", if_match=etag)
        assert answer.status == 202, answer.body
        return await self.task(answer)


VMS = "/api/vmm/v4.3/ahv/config/vms"


def code_of(answer: Answer) -> str:
    return str(answer.body["data"]["error"][0].get("code", ""))
