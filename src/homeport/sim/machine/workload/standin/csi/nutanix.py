"""Nutanix' driver: a volume is a volume group, attached to the VM of its Pod's node by the hypervisor."""

from __future__ import annotations

import asyncio
import base64
import ssl
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import orjson

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.standin.csi.driver import NUTANIX, Caller, DriverError, NewVolume
from homeport.sim.machine.workload.standin.wire import Message, ask

_PREFIX = "NutanixVolumes-"
_GROUPS = "/api/volumes/v4.0/config/volume-groups"
_POLLS, _POLL_SECONDS = 120, 1.0
_CODES = {400: "InvalidArgument", 401: "Unauthenticated", 403: "PermissionDenied", 404: "NotFound", 429: "Unavailable"}


class NutanixDriver:
    name: str = NUTANIX
    images: tuple[str, ...] = ("ntnx-csi", "ntnx-csi/ntnx-csi", "nutanix-csi", "karbon/ntnx-csi")
    sidecar: str = "csi-provisioner"
    secrets: tuple[str, ...] = ("ntnx-pc-secret", "ntnx-secret", "nutanix-csi-credentials")

    async def create(self, caller: Caller, wanted: NewVolume) -> tuple[str, dict[str, str]]:
        prism = _prism(caller)
        kind = wanted.parameters.get("storageType", "NutanixVolumes")
        if kind != "NutanixVolumes":
            raise DriverError("Unimplemented", f"storageType {kind} is not simulated: only NutanixVolumes is")
        cluster = await self._cluster_of(caller, prism, wanted.node or caller.pod["spec"]["nodeName"])
        found = await prism.find(_GROUPS, f"name eq '{wanted.name}'")
        if found is None:
            disk: Json = {"diskSizeBytes": wanted.size_bytes}
            if container := wanted.parameters.get("storageContainer"):
                disk["storageContainerId"] = await self._container(prism, container, cluster)
            body = {
                "name": wanted.name,
                "description": wanted.parameters.get("description", ""),
                "clusterReference": cluster,
                "sharingStatus": _sharing(wanted.claim),
                "disks": [disk],
            }
            await prism.change("POST", _GROUPS, body, request=wanted.claim["metadata"]["uid"])
            found = await prism.find(_GROUPS, f"name eq '{wanted.name}'")
        if found is None:
            raise DriverError("Internal", f"volume group {wanted.name} was created and is not there")
        return f"{_PREFIX}{found['extId']}", {"storageType": kind, "clusterReference": cluster}

    async def delete(self, caller: Caller, handle: str) -> None:
        prism = _prism(caller)
        if await prism.get(f"{_GROUPS}/{_id(handle)}") is not None:
            await prism.change("DELETE", f"{_GROUPS}/{_id(handle)}")

    async def expand(self, caller: Caller, handle: str, size_bytes: int) -> None:
        prism = _prism(caller)
        disks = await prism.get(f"{_GROUPS}/{_id(handle)}/disks") or []
        for disk in disks:
            if disk["diskSizeBytes"] < size_bytes:
                path = f"{_GROUPS}/{_id(handle)}/disks/{disk['extId']}"
                match = await prism.tag(path)
                await prism.change("PUT", path, {"diskSizeBytes": size_bytes}, headers={"if-match": match})

    async def attach(self, caller: Caller, handle: str, node: Json) -> None:
        prism, vm = _prism(caller), _vm(node)
        if vm not in await self._attached(prism, handle):
            await prism.change("POST", f"{_GROUPS}/{_id(handle)}/$actions/attach-vm", {"extId": vm})

    async def detach(self, caller: Caller, handle: str, node: Json | None) -> None:
        prism = _prism(caller)
        attached = await self._attached(prism, handle)
        # Without its Node nothing tells which VM it was: a volume that one Pod uses is on one VM.
        for vm in attached if node is None else [each for each in attached if each == _vm(node)]:
            await prism.change("POST", f"{_GROUPS}/{_id(handle)}/$actions/detach-vm", {"extId": vm})

    async def _attached(self, prism: Prism, handle: str) -> list[str]:
        found = await prism.get(f"{_GROUPS}/{_id(handle)}/vm-attachments")
        return [str(each["extId"]) for each in found or ()]

    async def _cluster_of(self, caller: Caller, prism: Prism, node: str) -> str:
        found = caller.view.nodes.get(node)
        if found is None:
            raise DriverError("NotFound", f"node {node} is gone")
        vm = await prism.get(f"/api/vmm/v4.0/ahv/config/vms/{_vm(found)}")
        if vm is None:
            raise DriverError("NotFound", f"Prism Central {prism.host} has no VM {_vm(found)}, the VM of node {node}")
        return str(vm["cluster"]["extId"])

    async def _container(self, prism: Prism, name: str, cluster: str) -> str:
        path = "/api/clustermgmt/v4.0/config/storage-containers"
        found = await prism.find(path, f"name eq '{name}' and clusterExtId eq '{cluster}'")
        if found is None:
            raise DriverError("NotFound", f"storage container {name} not found on the cluster {cluster}")
        return str(found["containerExtId"])


def _sharing(claim: Json) -> str:
    many = {"ReadWriteMany", "ReadOnlyMany"} & set(claim["spec"]["accessModes"])
    return "SHARED" if many else "NOT_SHARED"


def _id(handle: str) -> str:
    return handle.removeprefix(_PREFIX)


def _vm(node: Json) -> str:
    return str(node["status"]["nodeInfo"]["systemUUID"]).lower()


@dataclass(frozen=True, slots=True)
class Prism:
    """Prism Central as the driver's controller reaches it. All calls raise DriverError."""

    caller: Caller
    host: str
    port: int
    user: str
    password: str = field(repr=False)

    async def get(self, path: str) -> Any:
        """None if it is not there."""
        try:
            return (await self._call("GET", path)).get("data")
        except _Missing:
            return None

    async def tag(self, path: str) -> str:
        """The version that a change has to name."""
        return (await self._send("GET", path)).headers.get("etag", "")

    async def find(self, path: str, condition: str) -> Json | None:
        found = await self.get(f"{path}?$filter={quote(condition)}")
        return found[0] if isinstance(found, list) and found else None

    async def change(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        request: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Until its task is over."""
        named = {"ntnx-request-id": request or str(uuid.uuid4()), **(headers or {})}
        try:
            answer = await self._call(method, path, body, named)
        except _Missing as missing:
            raise DriverError("NotFound", str(missing)) from missing
        task = answer["data"]["extId"]
        for _ in range(_POLLS):
            found = await self.get(f"/api/prism/v4.0/config/tasks/{quote(task)}")
            status = found.get("status") if isinstance(found, dict) else None
            if status == "SUCCEEDED":
                return
            if isinstance(found, dict) and status in ("FAILED", "CANCELED"):
                why = "; ".join(str(each.get("message")) for each in found.get("errorMessages") or ())
                raise DriverError("Internal", f"task {task} of {method} {path}: {why or status}")
            await asyncio.sleep(_POLL_SECONDS)
        raise DriverError("DeadlineExceeded", f"task {task} of {method} {path} takes too long")

    async def _send(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Message:
        secret = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        named = {"authorization": f"Basic {secret}", "accept": "application/json", **(headers or {})}
        try:
            sock = await self.caller.cluster.network.connect(self.caller.host, self.host, self.port)
            data = b"" if body is None else orjson.dumps(body)
            return await ask(sock, _UNVERIFIED, self.host, f"{method} {path}", named, data)
        except (OSError, ValueError) as error:
            raise DriverError("Unavailable", f"Prism Central {self.host}:{self.port}: {error}") from error

    async def _call(
        self, method: str, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> Json:
        answer = await self._send(method, path, body, headers)
        found: Json = orjson.loads(answer.body) if answer.body else {}
        if answer.status == 404:
            raise _Missing(f"{method} {path}: not found")
        if answer.status >= 400:
            code = _CODES.get(answer.status, "Internal")
            raise DriverError(code, f"Prism Central {self.host}: {method} {path}: HTTP {answer.status}: {_why(found)}")
        return found


class _Missing(Exception):
    pass


def _why(answer: Json) -> str:
    error = (answer.get("data") or {}).get("error") or ()
    listed = error if isinstance(error, list | tuple) else [error]
    return "; ".join(str(each.get("message")) for each in listed if isinstance(each, dict)) or "no reason given"


def _unverified() -> ssl.SSLContext:
    """As the driver does it by default: Prism Central has a certificate that it signed itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_UNVERIFIED = _unverified()


def _prism(caller: Caller) -> Prism:
    """Raises DriverError for credentials that are missing or not HOST:PORT:USER:PASSWORD."""
    text = caller.secret.get("key", b"").decode(errors="replace").strip()
    if not text:
        raise DriverError("InvalidArgument", "no credentials: expected a Secret with key `key`")
    host, _, rest = text.partition(":")
    port, _, rest = rest.partition(":")
    user, _, password = rest.partition(":")
    if not host or not port.isdigit() or not user or not password:
        raise DriverError("InvalidArgument", "key `key` of the credentials Secret must be HOST:PORT:USER:PASSWORD")
    return Prism(caller, host, int(port), user, password)
