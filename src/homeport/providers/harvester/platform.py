"""The Harvester provider as platforms use it: sites, probes, and the Cluster API objects of their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine, KubevirtMachineTemplate
from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.platform import (
    ClusterRequest,
    Entity,
    ImageFact,
    Machines,
    PlatformSupport,
    ProbeReport,
    Problem,
    Resolved,
    Room,
    Shape,
    Source,
)
from homeport.client.dial import DialOptions
from homeport.infra.error import Ambiguous, Denied, ProviderError
from homeport.infra.platform.machine import DriverMachines, image_facts
from homeport.infra.preflight.check import REFERENCES, passed
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check
from homeport.providers.harvester.cloud.node import Nodes
from homeport.providers.harvester.discovery import discover
from homeport.providers.harvester.image import choose, display_name, image_fact, parse_name
from homeport.providers.harvester.imageimport import OS_LABEL, UID_LABEL, HarvesterImages
from homeport.providers.harvester.infracluster import permission
from homeport.providers.harvester.infracluster.connection import Connector, HarvesterSession
from homeport.providers.harvester.infracluster.resource import IMAGE, NETWORK
from homeport.providers.harvester.machine.driver import MachineDriver
from homeport.providers.harvester.preflight import capacity, reference
from homeport.providers.harvester.preflight.check import check_release
from homeport.providers.harvester.preflight.reference import Template
from homeport.providers.harvester.site import KEY, TYPE, HarvesterSite, faults, read_site
from homeport.runtime.manager import Manager

Json = dict[str, Any]
# Fields of a machine template, by parts of their paths, and the fields of a site that they come from.
_FIELDS = (
    ("networkName", "networkName"),
    ("storageClassName", "storageClassName"),
    ("bootDisk", "imageName"),
    ("keyPairs", "sshKeys"),
    ("namespace", "namespace"),
)
_PROBED = Shape(cpu=1, memory="1Gi", disk="")


# -- Cluster API objects ---------------------------------------------------------------------------------------------


def cluster_objects(site: HarvesterSite, request: ClusterRequest) -> list[Json]:
    """A Secret with the kubeconfig, and the KubevirtCluster."""
    secret = f"{request.name}-harvester-kubeconfig"
    spec: Json = {"infraClusterSecretRef": {"name": secret, "namespace": request.namespace}}
    if request.endpoint is not None:
        spec["controlPlaneEndpoint"] = {"host": request.endpoint[0], "port": request.endpoint[1]}
    labels = {**request.labels, CLUSTER_NAME_LABEL: request.name}
    kind = KubevirtCluster.__resource__
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": request.namespace, "labels": labels},
            "type": "Opaque",
            "stringData": {KEY: site.kubeconfig.decode(), "namespace": site.namespace},
        },
        {
            **kind.type_meta,
            "metadata": {"name": request.name, "namespace": request.namespace, "labels": labels},
            "spec": spec,
        },
    ]


def machine_template(site: HarvesterSite, shape: Shape) -> Json:
    kind = KubevirtMachineTemplate.__resource__
    return {
        **kind.type_meta,
        "spec": {"template": {"spec": machine_spec(site, shape)}},
    }


def machine_spec(site: HarvesterSite, shape: Shape) -> Json:
    networks = [{"name": f"nic-{number}", "multus": {"networkName": each}} for number, each in enumerate(site.networks)]
    inner = {
        "domain": {"cpu": {"cores": shape.cpu}, "memory": {"guest": shape.memory}},
        "networks": networks,
    }
    metadata: Json = {"namespace": site.namespace}
    if shape.labels:
        metadata["labels"] = dict(shape.labels)
    spec: Json = {
        "virtualMachineTemplate": {
            "metadata": metadata,
            "spec": {"runStrategy": "Always", "template": {"spec": inner}},
        }
    }
    image = shape.image or site.image
    if image:
        spec["bootDisk"] = {"image": image, **({"size": shape.disk} if shape.disk else {})}
    keys = [*site.keys, *shape.keys]
    if keys:
        spec["keyPairs"] = list(dict.fromkeys(keys))
    if shape.extra_disks:
        spec["dataDisks"] = [
            {
                "name": f"data-{number}",
                "size": each.size,
                **({"storageClassName": name} if (name := each.storage_class or site.storage_class) else {}),
            }
            for number, each in enumerate(shape.extra_disks)
        ]
    return spec


def _machine(site: HarvesterSite, shape: Shape) -> KubevirtMachine:
    return msgspec.convert({"spec": machine_spec(site, shape)}, KubevirtMachine)


# -- the vendor ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _SiteTemplate(Template):
    """A machine template that was made from a site: what is wrong is reported on the fields of the site."""

    part: str = ""

    def bad(self, field: str, reason: str, text: str, **more: bool) -> Check:
        path = next((f"{self.part}.{own}" for part, own in _FIELDS if part in field), self.part)
        return Check(REFERENCES, False, reason, f"{path}: {text}", **more)


class Access:
    def __init__(self, manager: Manager, dial: DialOptions) -> None:
        self._connector = Connector(manager.client, manager.clock, dial)
        driver = MachineDriver(manager.clock, Nodes(None))
        self.machines: Machines = DriverMachines(driver, self._session, _machine, manager.fence)
        self.images = HarvesterImages(self._session, manager.fence)

    async def _session(self, site: HarvesterSite) -> HarvesterSession:
        return await self._connector.session(site.kubeconfig, site.namespace, site.origin.secret)

    async def close(self) -> None:
        await self._connector.close()

    async def discover(self, source: Source) -> Sequence[Entity]:
        if source.site is not None:
            session = await self._session(source.site)
        elif source.infra is not None:
            session = await self._connector.connect(msgspec.convert(source.infra, KubevirtCluster))
        else:
            session = await self._connector.open(source.settings, source.secret)
        return await discover(session)

    async def probe(self, site: HarvesterSite) -> ProbeReport:
        session = await self._session(site)
        session.recent.forget()  # a probe shows what is there now
        images = await _images(session, site)
        room, unknown = await _room(session)
        return ProbeReport(
            version=await _version(session),
            problems=await _problems(session, site),
            resolved=tuple(await _resolved(session, site)),
            images=images,
            room=room,
            unknown_room=unknown,
        )


async def _problems(session: HarvesterSession, site: HarvesterSite) -> tuple[Problem, ...]:
    extra = [{"name": "data-0", "size": "1Gi", "storageClassName": site.storage_class}] if site.storage_class else []
    spec = {**machine_spec(site, _PROBED), **({"dataDisks": extra} if extra else {})}
    made = msgspec.convert({"spec": {"template": {"spec": spec}}}, KubevirtMachineTemplate)
    checks = await check_release(session)
    checks += await permission.check_machines(session, [made.spec.template.spec])
    if passed(checks):
        plan = MachinePlan("machines", template=made)
        checks += await reference.check(_SiteTemplate(session, plan, site.origin.part))
    return tuple(Problem(each.reason, each.message, each.advisory) for each in checks if not each.ok)


async def _resolved(session: HarvesterSession, site: HarvesterSite) -> list[Resolved]:
    """What could not be resolved is among the problems."""
    found = []
    for number, name in enumerate(site.networks):
        key = parse_name(name, site.namespace)
        for each in await session.shown(NETWORK, key.namespace):
            if each.name == key.name:
                field = f"networkNames[{number}]" if len(site.networks) > 1 else "networkName"
                found.append(Resolved(field, name, each.uid))
    if site.image and session.harvester:
        wanted = parse_name(site.image, site.namespace)
        try:
            image = choose(wanted, await session.shown(IMAGE, wanted.namespace), "")
        except Ambiguous as error:
            return [*found, Resolved("imageName", site.image, "", error.candidates)]
        except ProviderError:
            return found
        found.append(Resolved("imageName", display_name(image) or image.name, f"{image.namespace}/{image.name}"))
    return found


async def _images(session: HarvesterSession, site: HarvesterSite) -> tuple[ImageFact, ...]:
    if not session.harvester:
        return ()
    try:
        listed = await session.list(IMAGE)
    except Denied:
        listed = [*await session.shown(IMAGE, site.namespace)]
    return image_facts([image_fact(each) for each in listed], {name: os for name, os in map(_made, listed) if os})


def _made(image: Unstructured) -> tuple[str, str]:
    """The operating system of an image that Homeport brought."""
    labels = image.metadata.get("labels") or {}
    return f"{image.namespace}/{image.name}", str(labels.get(OS_LABEL) or "") if labels.get(UID_LABEL) else ""


async def _version(session: HarvesterSession) -> str:
    if not session.harvester:
        return "KubeVirt without Harvester"
    try:
        return await session.setting("server-version")
    except Denied:
        return ""


async def _room(session: HarvesterSession) -> tuple[Room | None, str]:
    try:
        free = await capacity.free_room(session)
        total = await capacity.total_memory(session)
    except Denied as error:
        return None, error.message
    memory = sum(each.memory for each in free.values())
    return Room(memory, total, len(free), float(sum(each.cpu for each in free.values()))), ""


PLATFORM = PlatformSupport(
    type=TYPE,
    title="Harvester",
    interface="enp1s0",
    secret_key=KEY,
    cluster_kind=KubevirtCluster.__resource__,
    template_kind=KubevirtMachineTemplate.__resource__,
    faults=faults,
    site=read_site,
    cluster_objects=cluster_objects,
    machine_template=machine_template,
    open=Access,
)
