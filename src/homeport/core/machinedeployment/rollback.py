"""Rollout commands for the command line, on any Client: history, pause, resume, restart, undo."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.api.cluster.v1beta2 import ContractRef, MachineDeployment, MachineSet
from homeport.capi.object import rollout
from homeport.capi.object.ownership import is_controlled_by
from homeport.capi.resolution import CRD, pick, plural
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.core.machine.uptodate import differences
from homeport.core.machinedeployment.revision import earlier, find_revision, revision_of, undo_patch


@dataclass(frozen=True, slots=True)
class Revision:
    number: int
    name: str
    version: str
    infrastructure: str
    bootstrap: str
    replicas: int
    current: bool
    earlier: tuple[int, ...] = ()


async def history(client: Client, key: Key) -> list[Revision]:
    """Oldest first."""
    deployment = await client.get(MachineDeployment, key)
    sets = await _sets(client, deployment)
    return [_revision(each, deployment) for each in sorted(sets, key=revision_of)]


def _revision(machine_set: MachineSet, deployment: MachineDeployment) -> Revision:
    spec = machine_set.spec.template.spec
    return Revision(
        number=revision_of(machine_set),
        name=machine_set.metadata.name,
        version=spec.version,
        infrastructure=_named(spec.infrastructure_ref),
        bootstrap=_named(spec.bootstrap.config_ref) or (spec.bootstrap.data_secret_name or ""),
        replicas=machine_set.spec.replicas or 0,
        current=revision_of(machine_set) == revision_of(deployment),
        earlier=tuple(earlier(machine_set)),
    )


def _named(ref: ContractRef | None) -> str:
    return f"{ref.kind}/{ref.name}" if ref is not None else ""


async def _sets(client: Client, deployment: MachineDeployment) -> list[MachineSet]:
    page = await client.list(MachineSet, Query(namespace=deployment.metadata.namespace))
    return [each for each in page.items if is_controlled_by(each, deployment)]


async def undo(client: Client, key: Key, to: int = 0) -> Revision:
    """Takes the template back; 0: to the revision before. Raises NoRevision or Refused."""
    deployment = await client.get(MachineDeployment, key)
    if deployment.spec.paused:
        raise rollout.Refused(f"MachineDeployment {key.name} is paused: resume it first")
    found = find_revision(await _sets(client, deployment), deployment, to)
    if not differences(found.spec.template.spec, deployment.spec.template.spec):
        raise rollout.Refused(f"MachineDeployment {key.name} already has the template of revision {revision_of(found)}")
    await _check_templates(client, found)
    await rollout.change(client, deployment, undo_patch(found))
    return _revision(found, deployment)


async def _check_templates(client: Client, machine_set: MachineSet) -> None:
    """An old revision is of no use when the templates it was made from are gone."""
    spec = machine_set.spec.template.spec
    for ref in (spec.infrastructure_ref, spec.bootstrap.config_ref):
        if ref is None:
            continue
        try:
            definition = await client.get(CRD, Key("", f"{plural(ref.kind)}.{ref.api_group}"))
            served = pick(definition.metadata.get("labels") or {}, ref.api_group, ref.kind)
            if served is not None:
                await client.get(served.resource, Key(machine_set.metadata.namespace, ref.name))
        except NotFound:
            what = f"{ref.kind} {ref.name} of revision {revision_of(machine_set)}"
            raise rollout.Refused(f"{what} no longer exists: create it first") from None


async def restart(client: Client, key: Key, now: float) -> str:
    found = await client.get(MachineDeployment, key)
    return await rollout.restart(client, found, now, paused=bool(found.spec.paused))


async def pause(client: Client, key: Key, *, paused: bool) -> bool:
    """False: it was so already."""
    found = await client.get(MachineDeployment, key)
    if bool(found.spec.paused) == paused:
        return False
    await rollout.change(client, found, {"spec": {"paused": True if paused else None}})
    return True
