"""Prism Central's API v4."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from homeport.infra.error import Misconfigured, Missing, Outdated, Rejected, Stale, Taken, Unreachable
from homeport.infra.vendor.task import Task
from homeport.providers.nutanix.client import Client, read_error
from homeport.providers.nutanix.prism import v3_image
from homeport.providers.nutanix.prism import v4_image as image_wire
from homeport.providers.nutanix.prism import v4_vm as wire
from homeport.providers.nutanix.prism.record import (
    Category,
    Container,
    Element,
    GpuProfile,
    Host,
    Image,
    NewImage,
    NewVm,
    Project,
    Subnet,
    Vm,
    VmShape,
    redescribed,
)
from homeport.runtime.clock import parse_time

_PAGE = 100
# Older namespaces than these lack fields that we need.
_OLDEST = (4, 0)
_AT_ONCE = 50  # so many ids still fit into the line of a request
_STATES: Mapping[str, Any] = {
    "QUEUED": "queued",
    "RUNNING": "running",
    "CANCELING": "running",
    "SUCCEEDED": "succeeded",
    "FAILED": "failed",
    "CANCELED": "failed",
    "SUSPENDED": "running",
}


async def probe_v4(client: Client) -> PrismV4 | None:
    """None: this Prism Central has no API v4 (pc.2023 and older). Raises ProviderError."""
    try:
        return PrismV4(client, await _negotiated(client, "vmm"))
    except Missing:
        return None


async def _negotiated(client: Client, namespace: str) -> str:
    """`v4.2`: the newest version of a namespace that this server has."""
    try:
        reply = await client.call("OPTIONS", f"/api/{namespace}/unversioned/info", what="versions of the API")
    except Rejected as old:
        # Servers that are older than the negotiation itself still may serve the first version.
        raise Missing(old.message) from old
    text = reply.body.get("data") if isinstance(reply.body, dict) else None
    text = text.get("version") if isinstance(text, dict) else text
    parts = str(text or "").removeprefix("v").split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        raise Unreachable(f"Prism Central {client.address}: {text!r} is not a valid version of the {namespace} API")
    if (int(parts[0]), int(parts[1])) < _OLDEST:
        raise Missing(f"Prism Central {client.address} has no {namespace} API v4")
    return f"v{parts[0]}.{parts[1]}"


class PrismV4:
    """The other namespaces have versions of their own, asked for when something of them is needed."""

    def __init__(self, client: Client, version: str) -> None:
        self.address = client.address
        self.version = version
        self._client = client
        self._versions = {"vmm": version}
        self._negotiating = asyncio.Lock()
        self._filters_ids = True

    async def close(self) -> None:
        await self._client.close()

    # -- what there is -----------------------------------------------------------------------------------------

    async def elements(self) -> list[Element]:
        found = await self._list("clustermgmt", "config/clusters")
        return [
            Element(
                each["extId"],
                each.get("name", ""),
                "PRISM_CENTRAL" in _functions(each),
                tuple(each.get("categories") or ()),
                str(((each.get("config") or {}).get("buildInfo") or {}).get("version") or ""),
                (each.get("config") or {}).get("isAvailable") is not False,
            )
            for each in found
        ]

    async def host_name(self, cluster_id: str, host_id: str) -> str:
        path = await self._path("clustermgmt", f"config/clusters/{cluster_id}/hosts/{host_id}")
        try:
            return str((await self._client.call("GET", path, what=f"host {host_id}")).body["data"].get("hostName", ""))
        except Missing:
            return ""

    async def hosts(self, cluster_id: str) -> list[Host]:
        found = await self._list("clustermgmt", f"config/clusters/{cluster_id}/hosts")
        return [_host(each) for each in found]

    async def subnets(self) -> list[Subnet]:
        return [_subnet(each) for each in await self._list("networking", "config/subnets")]

    async def images(self) -> list[Image]:
        return [image_wire.read_image(each) for each in await self._list("vmm", "content/images")]

    async def create_image(self, image: NewImage, request_id: str) -> str:
        if not image.source:
            return await v3_image.create_image(self._client, image, request_id)
        path, body = await self._path("vmm", "content/images"), image_wire.render_image(image)
        reply = await self._client.call("POST", path, body=body, request_id=request_id, what=f"image {image.name}")
        return _task_id(reply.body)

    async def upload_image(self, image_id: str, content: AsyncIterator[bytes], sha256: str) -> None:
        await v3_image.upload_image(self._client, image_id, content, sha256)

    async def delete_image(self, image: Image) -> str:
        path, what = await self._path("vmm", f"content/images/{image.id}"), f"image {image.name}"
        current = await self._client.call("GET", path, what=what)
        return _task_id((await self._client.call("DELETE", path, etag=current.etag, what=what)).body)

    async def projects(self) -> list[Project]:
        """v4 has no projects that every release serves: v3's answer counts."""
        reply = await self._client.call(
            "POST", "/api/nutanix/v3/projects/list", body={"kind": "project", "length": 500}, what="projects"
        )
        return [
            Project(
                each["metadata"]["uuid"],
                (each.get("spec") or each.get("status") or {}).get("name", ""),
                v3_image.quotas(each),
            )
            for each in reply.body.get("entities") or ()
        ]

    async def containers(self) -> list[Container]:
        return [
            Container(each.get("containerExtId") or each["extId"], each.get("name", ""), each.get("clusterExtId", ""))
            for each in await self._list("clustermgmt", "config/storage-containers")
        ]

    async def gpus(self, cluster_id: str) -> list[GpuProfile]:
        root = f"config/clusters/{cluster_id}"
        physical = await self._list("clustermgmt", f"{root}/physical-gpu-profiles")
        virtual = await self._list("clustermgmt", f"{root}/virtual-gpu-profiles")
        return [
            *(wire.read_gpu(each.get("physicalGpuConfig") or {}, virtual=False) for each in physical),
            *(wire.read_gpu(each.get("virtualGpuConfig") or {}, virtual=True) for each in virtual),
        ]

    # -- categories --------------------------------------------------------------------------------------------

    async def find_category(self, key: str, value: str) -> Category | None:
        query = {"$filter": f"key eq {_literal(key)} and value eq {_literal(value)}"}
        found = await self._list("prism", "config/categories", query)
        return next((Category(each["extId"], each["key"], each["value"]) for each in found), None)

    async def categories(self, key: str) -> list[Category]:
        found = await self._list("prism", "config/categories", {"$filter": f"key eq {_literal(key)}"})
        return [Category(each["extId"], each["key"], each["value"]) for each in found]

    async def create_category(self, key: str, value: str, description: str) -> Category:
        body = {
            "$objectType": "prism.v4.config.Category",
            "key": key,
            "value": value,
            "description": description,
        }
        reply = await self._client.call(
            "POST", await self._path("prism", "config/categories"), body=body, what=f"category {key}:{value}"
        )
        return Category(reply.body["data"]["extId"], key, value, reply.etag, is_new=True)  # not so: refused

    async def delete_category(self, category: Category) -> None:
        path = await self._path("prism", f"config/categories/{category.id}")
        what = f"category {category.key}:{category.value}"
        try:
            current = await self._client.call("GET", path, what=what)
            await self._client.call("DELETE", path, etag=current.etag, what=what)
        except Missing:
            return
        except Outdated:
            raise
        except (Rejected, Stale) as error:
            raise Taken(error.message, code=error.code) from error

    # -- machines ----------------------------------------------------------------------------------------------

    async def vm(self, vm_id: str) -> Vm | None:
        try:
            reply = await self._client.call("GET", await self._vm(vm_id), what=f"VM {vm_id}")
        except Missing:
            return None
        return wire.read_vm(reply.body["data"], reply.etag)

    async def vms(self, wanted: Mapping[str, str]) -> list[Vm]:
        """By one filtered list for many; a server that refuses the filter is asked for one after the other."""
        found: list[Vm] = []
        ids = list(wanted)
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            if len(some) > 1 and self._filters_ids:
                query = {"$filter": " or ".join(f"extId eq {_literal(each)}" for each in some)}
                try:
                    found += map(wire.read_vm, await self._list("vmm", "ahv/config/vms", query))
                    continue
                except (Rejected, Misconfigured):
                    self._filters_ids = False
            found += [vm for each in some if (vm := await self.vm(each)) is not None]
        return found

    async def find_vms(self, *, names: Sequence[str] = ()) -> list[Vm]:
        query = {"$filter": " or ".join(f"name eq {_literal(name)}" for name in names)} if names else {}
        return [wire.read_vm(each) for each in await self._list("vmm", "ahv/config/vms", query)]

    async def create_vm(self, vm: NewVm, request_id: str) -> str:
        path = await self._path("vmm", "ahv/config/vms")
        body = wire.render_vm(vm, newer=self._at_least("vmm", 4, 2))
        reply = await self._client.call("POST", path, body=body, request_id=request_id, what=f"VM {vm.name}")
        return _task_id(reply.body)

    async def power_on(self, vm: Vm) -> str:
        return await self._act(vm, "power-on")

    async def detach(self, vm: Vm, volume_group_id: str) -> str:
        path = await self._path("volumes", f"config/volume-groups/{volume_group_id}/$actions/detach-vm")
        body = {"$objectType": "volumes.v4.config.VmAttachment", "extId": vm.id}
        reply = await self._client.call("POST", path, body=body, what=f"volume group {volume_group_id}")
        return _task_id(reply.body)

    async def delete_vm(self, vm: Vm) -> str:
        path, etag = await self._vm(vm.id), await self._etag(vm)
        reply = await self._client.call("DELETE", path, etag=etag, what=f"VM {vm.name}")
        return _task_id(reply.body)

    def shape(self, vm: Vm) -> VmShape:
        return wire.read_shape(vm.raw)

    async def edit_marks(self, vm: Vm, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> str:
        """One of the two. Servers before v4.2 have no custom attributes: there marks are lines of the description."""
        if self._at_least("vmm", 4, 2):
            action, texts = ("add", add) if add else ("remove", remove)
            return await self._act(vm, f"{action}-custom-attributes", {"customAttributes": list(texts)})
        path = await self._vm(vm.id)
        current = await self._client.call("GET", path, what=f"VM {vm.name}")
        raw = current.body["data"]
        body = {**raw, "description": redescribed(raw.get("description"), add, remove)}
        return _task_id((await self._client.call("PUT", path, body=body, etag=current.etag, what=f"VM {vm.name}")).body)

    async def add_category(self, vm: Vm, category: Category) -> str:
        return await self._act(vm, "associate-categories", {"categories": [{"extId": category.id}]})

    async def remove_category(self, vm: Vm, category: Category) -> str:
        return await self._act(vm, "disassociate-categories", {"categories": [{"extId": category.id}]})

    async def _act(self, vm: Vm, action: str, body: Any = None) -> str:
        path = f"{await self._vm(vm.id)}/$actions/{action}"
        etag = await self._etag(vm)
        reply = await self._client.call("POST", path, body=body, etag=etag, what=f"VM {vm.name}: {action}")
        return _task_id(reply.body)

    async def _etag(self, vm: Vm) -> str:
        """Lists give none, so the machine is read once more where it came from one."""
        if vm.etag:
            return vm.etag
        current = await self.vm(vm.id)
        if current is None:
            raise Missing(f"Prism Central {self.address}: VM {vm.name} no longer exists")
        return current.etag

    # -- tasks -------------------------------------------------------------------------------------------------

    async def tasks(self, ids: Sequence[str]) -> list[Task]:
        found: list[Task] = []
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            if len(some) == 1:
                found += await self._task(some[0])
                continue
            wanted = " or ".join(f"extId eq {_literal(each)}" for each in some)
            found += [_task(each) for each in await self._list("prism", "config/tasks", {"$filter": wanted})]
        return found

    async def recent_tasks(self) -> list[Task]:
        path = await self._path("prism", "config/tasks")
        query = {"$limit": str(_PAGE), "$orderby": "createdTime desc"}
        reply = await self._client.call("GET", path, query=query, what="tasks")
        return [_task(each) for each in reply.body.get("data") or ()]

    async def _task(self, task_id: str) -> list[Task]:
        try:
            path = await self._path("prism", f"config/tasks/{quote(task_id, safe='')}")
            return [_task((await self._client.call("GET", path, what=f"task {task_id}")).body["data"])]
        except Missing:
            return []

    # -- paths and pages ---------------------------------------------------------------------------------------

    async def _path(self, namespace: str, rest: str) -> str:
        if namespace not in self._versions:
            async with self._negotiating:
                await self._negotiate(namespace)
        return f"/api/{namespace}/{self._versions[namespace]}/{rest}"

    async def _negotiate(self, namespace: str) -> None:
        if namespace in self._versions:
            return
        try:
            self._versions[namespace] = await _negotiated(self._client, namespace)
        except Missing as error:  # nothing that anybody asked for is missing
            raise Rejected(error.message, code=error.code) from error

    async def _vm(self, vm_id: str) -> str:
        return await self._path("vmm", f"ahv/config/vms/{vm_id}")

    def _at_least(self, namespace: str, major: int, minor: int) -> bool:
        have = tuple(int(each) for each in self._versions[namespace].removeprefix("v").split("."))
        return have >= (major, minor)

    async def _list(self, namespace: str, rest: str, query: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """All pages. What changes between two of them may be missed or seen twice: each is taken once."""
        path, found = await self._path(namespace, rest), {}
        page = 0
        while True:
            asked = {**(query or {}), "$page": str(page), "$limit": str(_PAGE)}
            reply = await self._client.call("GET", path, query=asked, what=rest.rpartition("/")[2])
            items = reply.body.get("data") or []
            if isinstance(items, dict):
                text, _ = read_error(reply.body)
                raise Misconfigured(f"Prism Central {self.address}: {rest}: {text or 'a list was expected'}")
            for number, item in enumerate(items):
                found[item.get("extId") or f"{page}/{number}"] = item
            page += 1
            if len(items) < _PAGE:
                return list(found.values())


def _functions(cluster: Mapping[str, Any]) -> Sequence[str]:
    functions: Sequence[str] = (cluster.get("config") or {}).get("clusterFunction") or ()
    return functions


def _host(each: Mapping[str, Any]) -> Host:
    memory, threads = (int(each.get(field) or 0) for field in ("memorySizeBytes", "numberOfCpuThreads"))
    return Host(each["extId"], each.get("hostName", ""), memory, threads)


def _subnet(each: Mapping[str, Any]) -> Subnet:
    ipv4: Mapping[str, Any] = next((config["ipv4"] for config in each.get("ipConfig") or () if config.get("ipv4")), {})
    base = ipv4.get("ipSubnet") or {}
    address = (base.get("ip") or {}).get("value", "")
    references = [each.get("clusterReference"), *(each.get("clusterReferenceList") or ())]
    usage = each.get("ipUsage") or {}
    return Subnet(
        each["extId"],
        each.get("name", ""),
        each.get("subnetType", "VLAN"),
        tuple(dict.fromkeys(ref for ref in references if ref)),
        f"{address}/{base.get('prefixLength')}" if address else "",
        tuple(
            ((pool.get("startIp") or {}).get("value", ""), (pool.get("endIp") or {}).get("value", ""))
            for pool in ipv4.get("poolList") or ()
        ),
        usage.get("numFreeIPs"),
    )


def _task(each: Mapping[str, Any]) -> Task:
    messages = each.get("errorMessages") or ()
    texts = [str(m.get("message", "")) for m in messages] or [str(each.get("legacyErrorMessage") or "")]
    error = "; ".join(filter(None, texts))
    status = str(each.get("status", ""))
    if status == "CANCELED" and not error:
        error = "the task was cancelled"
    return Task(
        each["extId"],
        _STATES.get(status, "running"),
        int(each.get("progressPercentage") or 0),
        tuple(dict.fromkeys(e["extId"] for e in each.get("entitiesAffected") or () if e.get("extId"))),
        error,
        tuple(str(m["code"]) for m in messages if m.get("code")),
        str(each.get("operation") or ""),
        tuple(str(e["name"]) for e in each.get("entitiesAffected") or () if e.get("name")),
        parse_time(str(each["createdTime"])) if each.get("createdTime") else 0.0,
    )


def _task_id(body: Any) -> str:
    found = (body.get("data") or {}).get("extId") if isinstance(body, dict) else None
    if not found:
        raise Unreachable("Prism Central accepted a request but returned no task")
    return str(found)


def _literal(text: str) -> str:
    """An OData string: quotes in it are doubled."""
    return "'" + text.replace("'", "''") + "'"
