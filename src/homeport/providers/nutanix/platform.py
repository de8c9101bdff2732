"""The Nutanix provider as platforms use it: sites, probes, and the Cluster API objects of their clusters."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from homeport.api.nutanix.v1beta1 import Identifier, NutanixCluster, NutanixMachine, NutanixMachineTemplate
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.platform import (
    ClusterRequest,
    Machines,
    PlatformSupport,
    ProbeReport,
    Resolved,
    Room,
    Shape,
    Source,
)
from homeport.capi.platform import Entity as PlatformEntity
from homeport.client.dial import DialOptions
from homeport.client.protocol import Key
from homeport.infra.machine.driver import InstanceDriver
from homeport.infra.platform.image import SYSTEM_MARK, UID_MARK
from homeport.infra.platform.machine import DriverMachines, Findings, image_facts
from homeport.providers.nutanix.connection import Connector, PrismSession
from homeport.providers.nutanix.credential import Target
from homeport.providers.nutanix.discovery import discover
from homeport.providers.nutanix.image import NutanixImages
from homeport.providers.nutanix.machine import NutanixInstances
from homeport.providers.nutanix.prism.record import Container, Element, Entity, Image, Subnet
from homeport.providers.nutanix.site import TYPE, NutanixSite, faults, read_site
from homeport.providers.nutanix.spelling import identifier
from homeport.runtime.manager import Manager

Json = dict[str, Any]
E = TypeVar("E", bound=Entity)


# -- Cluster API objects ---------------------------------------------------------------------------------------------


def cluster_objects(site: NutanixSite, request: ClusterRequest) -> list[Json]:
    """A Secret with the credentials as NutanixClusters read them, and the NutanixCluster."""
    secret = f"{request.name}-nutanix-creds"
    central: Json = {
        "address": site.address,
        "port": site.port,
        "insecure": site.insecure,
        "credentialRef": {"kind": "Secret", "name": secret},
    }
    if site.bundle:
        central["additionalTrustBundle"] = {"kind": "String", "data": site.bundle}
    spec: Json = {"prismCentral": central}
    if request.endpoint is not None:
        spec["controlPlaneEndpoint"] = {"host": request.endpoint[0], "port": request.endpoint[1]}
    labels = {**request.labels, CLUSTER_NAME_LABEL: request.name}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": request.namespace, "labels": labels},
            "type": "Opaque",
            "stringData": {"credentials": _credentials(site)},
        },
        {
            **NutanixCluster.__resource__.type_meta,
            "metadata": {"name": request.name, "namespace": request.namespace, "labels": labels},
            "spec": spec,
        },
    ]


def _credentials(site: NutanixSite) -> str:
    held = site.credentials
    if held.api_key:
        return json.dumps([{"type": "api_key", "data": {"prismCentral": {"apiKey": held.api_key}}}])
    central = {"username": held.username, "password": held.password}
    return json.dumps([{"type": "basic_auth", "data": {"prismCentral": central}}])


def machine_template(site: NutanixSite, shape: Shape) -> Json:
    kind = NutanixMachineTemplate.__resource__
    return {
        **kind.type_meta,
        "spec": {"template": {"spec": machine_spec(site, shape)}},
    }


def machine_spec(site: NutanixSite, shape: Shape) -> Json:
    spec: Json = {
        "vcpuSockets": shape.cpu,
        "vcpusPerSocket": 1,
        "memorySize": shape.memory,
        "systemDiskSize": shape.disk,
        "cluster": dict(site.cluster),
        "subnet": [dict(each) for each in site.subnets],
        "bootType": site.boot_type or "legacy",
    }
    image = identifier(shape.image) if shape.image else site.image_ref
    if image is not None:
        spec["image"] = dict(image)
    if site.project is not None:
        spec["project"] = dict(site.project)
    if site.categories:
        spec["additionalCategories"] = [dict(each) for each in site.categories]
    if shape.extra_disks:
        spec["dataDisks"] = [_data_disk(site, each.size, each.storage_class) for each in shape.extra_disks]
    return spec


def _data_disk(site: NutanixSite, size: str, container: str) -> Json:
    made: Json = {"diskSize": size}
    wanted = identifier(container) if container else site.container
    if wanted is not None:
        made["storageConfig"] = {"diskMode": "Standard", "storageContainer": dict(wanted)}
    return made


def _machine(site: NutanixSite, shape: Shape) -> NutanixMachine:
    return msgspec.convert({"spec": machine_spec(site, shape)}, NutanixMachine)


# -- the vendor ------------------------------------------------------------------------------------------------------


class Access:
    def __init__(self, manager: Manager, dial: DialOptions) -> None:
        self._connector = Connector(manager.client, manager.clock, dial)
        driver = InstanceDriver(NutanixInstances(lambda namespace, name: None), manager.clock)
        self.machines: Machines = DriverMachines(driver, self._session, _machine, manager.fence)
        self.images = NutanixImages(self._session, manager.clock, manager.fence)

    async def _session(self, site: NutanixSite) -> PrismSession:
        trust = f"the key ca.pem of {site.origin.secret}"
        if site.origin.insecure:
            trust += f" (for a test, set {site.origin.insecure}: true)"
        target = Target(site.address, site.port, site.insecure, Key("", ""), trust=trust)
        return await self._connector.session(target, site.credentials, site.bundle.encode() or None)

    async def close(self) -> None:
        await self.images.close()
        await self._connector.close()

    async def discover(self, source: Source) -> Sequence[PlatformEntity]:
        if source.site is not None:
            session = await self._session(source.site)
        elif source.infra is not None:
            session = await self._connector.connect(msgspec.convert(source.infra, NutanixCluster))
        else:
            session = await self._connector.open(source.settings, source.secret)
        return await discover(session)

    async def probe(self, site: NutanixSite) -> ProbeReport:
        session, findings = await self._session(site), Findings()
        session.lookup.forget()  # a probe shows what is there now
        element = await _resolve(findings, session.lookup.element, site, "cluster", site.cluster)
        if element is not None:
            await _resolve_on(session, site, element, findings)
        if site.image_ref is not None:
            image = await _resolve(findings, session.lookup.image, site, "image", site.image_ref)
            if image is not None:
                _check_image(image, f"{site.origin.part}.image", findings)
        if site.project is not None:
            await _resolve(findings, session.lookup.project, site, "project", site.project)
        images = image_facts(
            [(each.id, each.name, _usable(each), each.size_bytes) for each in await session.lookup.images()],
            {each.id: system for each in await session.lookup.images() if (system := each.mark(SYSTEM_MARK))},
        )
        return ProbeReport(
            version=await _version(session),
            problems=tuple(findings.problems),
            resolved=tuple(findings.resolved),
            images=images,
            room=await _room(session, element) if element is not None else None,
            unknown_room="" if element is not None else "the cluster (Prism Element) is not known",
        )


async def _resolve(
    findings: Findings, look_up: Callable[[Identifier, str], Awaitable[E]], site: NutanixSite, field: str, wanted: Json
) -> E | None:
    name = str(wanted.get("name") or wanted.get("uuid"))
    found = await findings.tried(look_up(_wanted(wanted), f"{site.origin.part}.{field}"), field, name)
    if found is not None:
        findings.resolved.append(Resolved(field, found.name, found.id))
    return found


async def _resolve_on(session: PrismSession, site: NutanixSite, element: Element, findings: Findings) -> None:
    """What belongs to a Prism Element: several may have a subnet of the same name."""

    async def subnet(wanted: Identifier, field: str) -> Subnet:
        return await session.lookup.subnet(wanted, element, field)

    async def container(wanted: Identifier, field: str) -> Container:
        return await session.lookup.container(wanted, element, field)

    for number, each in enumerate(site.subnets):
        field = f"subnets[{number}]" if len(site.subnets) > 1 else "subnet"
        found = await _resolve(findings, subnet, site, field, each)
        if found is not None and found.cidr and not found.pools:
            text = f"{site.origin.part}.{field}: subnet {found.name!r} has no IP pool: machines need static addresses"
            findings.add("SubnetWithoutPool", f"{text}, or add a pool in Prism Central", advisory=True)
    if site.container is not None:
        await _resolve(findings, container, site, "storageContainer", site.container)


def _wanted(reference: Json) -> Identifier:
    return msgspec.convert(reference, Identifier)


def _usable(image: Image) -> bool:
    """Not an installer, and not one whose content is still being uploaded."""
    return image.kind == "disk" and not image.failed and (image.size_bytes > 0 or not image.mark(UID_MARK))


def _check_image(image: Image, field: str, findings: Findings) -> None:
    if image.kind == "iso":
        text = f"{field}: {image.name!r} is an ISO installer image: a disk image (type DISK, qcow2 or raw) is required"
        findings.add("ImageIsISO", text)


async def _version(session: PrismSession) -> str:
    """Of Prism Central, as its own entry among the clusters has it; otherwise of its API."""
    for each in await session.lookup.all_elements():
        if each.is_central and each.release:
            return each.release
    return f"API {session.prism.version}"


async def _room(session: PrismSession, element: Element) -> Room:
    vms = await session.prism.find_vms()
    used = sum(vm.memory_bytes for vm in vms if vm.cluster_id == element.id and vm.power == "on")
    hosts = await session.prism.hosts(element.id)
    total = sum(host.memory_bytes for host in hosts)
    return Room(max(total - used, 0), total, len(hosts))


PLATFORM = PlatformSupport(
    type=TYPE,
    title="Nutanix AHV",
    interface="ens3",
    cluster_kind=NutanixCluster.__resource__,
    template_kind=NutanixMachineTemplate.__resource__,
    faults=faults,
    site=read_site,
    cluster_objects=cluster_objects,
    machine_template=machine_template,
    open=Access,
)
