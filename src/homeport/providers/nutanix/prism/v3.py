"""Prism Central's API v3, for releases that have no v4 (pc.2023 and older).

It has neither custom attributes nor request ids: a machine's marks are lines of its description, and a create whose
answer was lost is found by its name and mark.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from homeport.infra.error import Missing, Outdated, Rejected, Stale, Taken
from homeport.infra.vendor.task import Task
from homeport.providers.nutanix.client import Client
from homeport.providers.nutanix.prism import v3_image as wire
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
from homeport.providers.nutanix.prism.v3_vm import (
    categories_of,
    category_ids,
    read_shape,
    read_vm,
    reference,
    render_vm,
)

_ROOT = wire.ROOT
_PAGE = 200
_MIB = 2**20
_STATES: Mapping[str, Any] = {
    "QUEUED": "queued",
    "RUNNING": "running",
    "SUCCEEDED": "succeeded",
    "SUSPENDED": "running",
}


class PrismV3:
    version = "v3"

    def __init__(self, client: Client) -> None:
        self.address = client.address
        self._client = client

    async def close(self) -> None:
        await self._client.close()

    # -- what there is -----------------------------------------------------------------------------------------

    async def elements(self) -> list[Element]:
        found = await self._list("cluster")
        return [
            Element(
                wire.uuid_of(each),
                wire.name_of(each),
                "PRISM_CENTRAL" in _services(each),
                category_ids(each),
                _release_of(each),
                _config(each).get("is_available") is not False,
            )
            for each in found
        ]

    async def host_name(self, cluster_id: str, host_id: str) -> str:
        try:
            return wire.name_of(
                (await self._client.call("GET", f"{_ROOT}/hosts/{host_id}", what=f"host {host_id}")).body
            )
        except Missing:
            return ""

    async def hosts(self, cluster_id: str) -> list[Host]:
        found = [each for each in await self._list("host") if reference(each, "cluster_reference") == cluster_id]
        return [Host(each["metadata"]["uuid"], wire.name_of(each), _memory_of(each)) for each in found]

    async def subnets(self) -> list[Subnet]:
        return [_subnet(each) for each in await self._list("subnet")]

    async def images(self) -> list[Image]:
        return [wire.read_image(each) for each in await self._list("image")]

    async def create_image(self, image: NewImage, request_id: str) -> str:
        return await wire.create_image(self._client, image, request_id)

    async def upload_image(self, image_id: str, content: AsyncIterator[bytes], sha256: str) -> None:
        await wire.upload_image(self._client, image_id, content, sha256)

    async def delete_image(self, image: Image) -> str:
        reply = await self._client.call("DELETE", f"{_ROOT}/images/{image.id}", what=f"image {image.name}")
        return wire.task_of(reply.body)

    async def projects(self) -> list[Project]:
        return [
            Project(wire.uuid_of(each), wire.name_of(each), wire.quotas(each)) for each in await self._list("project")
        ]

    async def containers(self) -> list[Container]:
        raise Rejected(
            f"Prism Central {self.address} has no API v4, which storage containers require: remove storageContainer, "
            "or upgrade Prism Central to pc.2024.3 or newer"
        )

    async def gpus(self, cluster_id: str) -> list[GpuProfile]:
        found: list[GpuProfile] = []
        for host in await self._list("host"):
            if reference(host, "cluster_reference") != cluster_id:
                continue
            for gpu in (host["status"].get("resources") or {}).get("gpu_list") or ():
                mode = str(gpu.get("mode") or "PASSTHROUGH_COMPUTE")
                free = bool(gpu.get("assignable", not gpu.get("consumer_reference")))
                name, vendor = str(gpu.get("name", "")), str(gpu.get("vendor", ""))
                found.append(GpuProfile(name, int(gpu.get("device_id") or 0), vendor, mode, mode == "VIRTUAL", free))
        return found

    # -- categories --------------------------------------------------------------------------------------------

    async def find_category(self, key: str, value: str) -> Category | None:
        try:
            await self._client.call("GET", _category_path(key, value), what=f"category {key}:{value}")
        except Missing:
            return None
        return Category(f"{key}/{value}", key, value)

    async def categories(self, key: str) -> list[Category]:
        try:
            found = await self._pages(f"categories/{quote(key, safe='')}", "category")
        except Missing:
            return []
        return [Category(f"{key}/{each['value']}", key, each["value"]) for each in found]

    async def create_category(self, key: str, value: str, description: str) -> Category:
        body = {"name": key, "description": description}
        await self._client.call("PUT", f"{_ROOT}/categories/{key}", body=body, what=f"category {key}")
        body = {"value": value, "description": description}
        await self._client.call("PUT", _category_path(key, value), body=body, what=f"category {key}:{value}")
        return Category(f"{key}/{value}", key, value)  # it may have existed: the answer is the same

    async def delete_category(self, category: Category) -> None:
        try:
            await self._client.call(
                "DELETE", _category_path(category.key, category.value), what=f"category {category.id}"
            )
        except Missing:
            return
        except Outdated:
            raise
        except (Rejected, Stale) as error:
            raise Taken(error.message, code=error.code) from error

    # -- machines ----------------------------------------------------------------------------------------------

    async def vm(self, vm_id: str) -> Vm | None:
        try:
            return read_vm((await self._client.call("GET", f"{_ROOT}/vms/{vm_id}", what=f"VM {vm_id}")).body)
        except Missing:
            return None

    async def vms(self, wanted: Mapping[str, str]) -> list[Vm]:
        """Lists are filtered by names alone: those whose name is known are listed, the others read one by one."""
        named = list(dict.fromkeys(filter(None, wanted.values()))) if len(wanted) > 1 else []
        listed: dict[str, Vm] = {}
        for start in range(0, len(named), _PAGE):
            listed |= {vm.id: vm for vm in await self.find_vms(names=named[start : start + _PAGE]) if vm.id in wanted}
        alone = [vm_id for vm_id, name in wanted.items() if vm_id not in listed and not (named and name)]
        read = [vm for each in alone if (vm := await self.vm(each)) is not None]
        return [*listed.values(), *read]

    async def find_vms(self, *, names: Sequence[str] = ()) -> list[Vm]:
        wanted = ",".join(f"vm_name=={name}" for name in names)  # a comma is an "or"
        return [read_vm(each) for each in await self._list("vm", wanted)]

    async def create_vm(self, vm: NewVm, request_id: str) -> str:
        body = render_vm(vm)
        reply = await self._client.call("POST", f"{_ROOT}/vms", body=body, request_id=request_id, what=f"VM {vm.name}")
        return wire.task_of(reply.body)

    async def power_on(self, vm: Vm) -> str:
        return await self._change(vm, lambda spec: spec["resources"].update(power_state="ON"))

    async def detach(self, vm: Vm, volume_group_id: str) -> str:
        def remove(spec: dict[str, Any]) -> None:
            disks = spec["resources"].get("disk_list") or []
            spec["resources"]["disk_list"] = [
                each for each in disks if (each.get("volume_group_reference") or {}).get("uuid") != volume_group_id
            ]

        return await self._change(vm, remove)

    async def delete_vm(self, vm: Vm) -> str:
        reply = await self._client.call("DELETE", f"{_ROOT}/vms/{vm.id}", what=f"VM {vm.name}")
        return wire.task_of(reply.body)

    def shape(self, vm: Vm) -> VmShape:
        return read_shape(vm.raw)

    async def edit_marks(self, vm: Vm, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> str:
        def edit(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
            spec["description"] = redescribed(spec.get("description"), add, remove)

        return await self._edit(vm, edit)

    async def add_category(self, vm: Vm, category: Category) -> str:
        def edit(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
            values = categories_of(metadata).setdefault(category.key, [])
            if category.value not in values:
                values.append(category.value)

        return await self._edit(vm, edit)

    async def remove_category(self, vm: Vm, category: Category) -> str:
        def edit(spec: dict[str, Any], metadata: dict[str, Any]) -> None:
            mapping = categories_of(metadata)
            kept = [each for each in mapping.pop(category.key, []) if each != category.value]
            if kept:
                mapping[category.key] = kept

        return await self._edit(vm, edit)

    async def _change(self, vm: Vm, edit: Any) -> str:
        return await self._edit(vm, lambda spec, metadata: edit(spec))

    async def _edit(self, vm: Vm, edit: Callable[[dict[str, Any], dict[str, Any]], None]) -> str:
        """Read, edit, write back with the version that was read: somebody else's change is never overwritten."""
        path = f"{_ROOT}/vms/{vm.id}"
        current = (await self._client.call("GET", path, what=f"VM {vm.name}")).body
        spec, metadata = copy.deepcopy(current["spec"]), copy.deepcopy(current["metadata"])
        edit(spec, metadata)
        body = {"api_version": "3.1", "metadata": metadata, "spec": spec}
        return wire.task_of((await self._client.call("PUT", path, body=body, what=f"VM {vm.name}")).body)

    # -- tasks -------------------------------------------------------------------------------------------------

    async def tasks(self, ids: Sequence[str]) -> list[Task]:
        found = []
        for each in ids:
            try:
                found.append(_task((await self._client.call("GET", f"{_ROOT}/tasks/{each}", what=f"task {each}")).body))
            except Missing:
                continue
        return found

    async def recent_tasks(self) -> list[Task]:
        body = {"kind": "task", "length": _PAGE, "sort_attribute": "creation_time_usecs", "sort_order": "DESCENDING"}
        reply = await self._client.call("POST", f"{_ROOT}/tasks/list", body=body, what="tasks")
        return [_task(each) for each in reply.body.get("entities") or ()]

    # -- pages -------------------------------------------------------------------------------------------------

    async def _list(self, kind: str, wanted: str = "") -> list[dict[str, Any]]:
        return await self._pages(f"{kind}s", kind, wanted)

    async def _pages(self, path: str, kind: str, wanted: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while True:
            body: dict[str, Any] = {"kind": kind, "length": _PAGE, "offset": len(found)}
            if wanted:
                body["filter"] = wanted
            reply = await self._client.call("POST", f"{_ROOT}/{path}/list", body=body, what=path)
            items = reply.body.get("entities") or []
            found += items
            total = int((reply.body.get("metadata") or {}).get("total_matches") or 0)
            if not items or len(found) >= total:
                return found


def _category_path(key: str, value: str) -> str:
    return f"{_ROOT}/categories/{key}/{value}"


def _config(cluster: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ((cluster.get("status") or {}).get("resources") or {}).get("config") or {}
    return found


def _services(cluster: Mapping[str, Any]) -> Sequence[str]:
    services: Sequence[str] = _config(cluster).get("service_list") or ()
    return services


def _release_of(cluster: Mapping[str, Any]) -> str:
    return str((_config(cluster).get("build") or {}).get("version") or "")


def _subnet(each: Mapping[str, Any]) -> Subnet:
    resources = (each.get("status") or {}).get("resources") or (each.get("spec") or {}).get("resources") or {}
    config = resources.get("ip_config") or {}
    address = config.get("subnet_ip", "")
    cluster = reference(each, "cluster_reference")
    pools = [str(pool.get("range", "")).replace("-", " ").split() for pool in config.get("pool_list") or ()]
    return Subnet(
        wire.uuid_of(each),
        wire.name_of(each),
        str(resources.get("subnet_type") or "VLAN"),
        (cluster,) if cluster else (),
        f"{address}/{config.get('prefix_length')}" if address else "",
        tuple((pool[0], pool[-1]) for pool in pools if pool),
        (resources.get("ip_usage_stats") or {}).get("num_free_ips"),
    )


def _memory_of(host: Mapping[str, Any]) -> int:
    return int((host["status"].get("resources") or {}).get("memory_capacity_mib") or 0) * _MIB


def _task(each: Mapping[str, Any]) -> Task:
    status = str(each.get("status", ""))
    return Task(
        str(each.get("uuid", "")),
        _STATES.get(status, "failed"),
        int(each.get("percentage_complete") or 0),
        tuple(ref["uuid"] for ref in each.get("entity_reference_list") or () if ref.get("uuid")),
        str(each.get("error_detail") or ""),
        tuple(filter(None, [str(each.get("error_code") or "")])),
        str(each.get("operation_type") or ""),
        tuple(str(ref["name"]) for ref in each.get("entity_reference_list") or () if ref.get("name")),
        float(each.get("creation_time_usecs") or 0) / 1_000_000,
    )
