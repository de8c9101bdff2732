"""Rollout commands for the command line, on any Client: history, pause, resume, restart, undo."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from homeport.api.cluster.v1beta2 import ContractRef, MachineDeployment, MachineSet
from homeport.capi.object.ownership import is_controlled_by
from homeport.capi.resolution import CRD, pick, plural
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.core.machine.uptodate import differences
from homeport.core.machinedeployment.revision import earlier, find_revision, revision_of, undo_patch
from homeport.runtime.clock import rfc3339

_WRITE = Write(field_manager="homeport-rollout")


class Refused(Exception):
    """It can't be done as things are; says what to do first."""


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
        raise Refused(f"MachineDeployment {key.name} is paused: resume it first")
    found = find_revision(await _sets(client, deployment), deployment, to)
    if not differences(found.spec.template.spec, deployment.spec.template.spec):
        raise Refused(f"MachineDeployment {key.name} already has the template of revision {revision_of(found)}")
    await _check_templates(client, found)
    await _patch(client, deployment, undo_patch(found))
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
            number = revision_of(machine_set)
            raise Refused(f"{ref.kind} {ref.name} of revision {number} no longer exists: create it first") from None


async def restart(client: Client, key: Key, now: float) -> str:
    """Replaces all Machines though nothing has changed. Gives the time that was set."""
    deployment = await client.get(MachineDeployment, key)
    if deployment.spec.paused:
        raise Refused(f"MachineDeployment {key.name} is paused: resume it first")
    when = rfc3339(now)
    await _patch(client, deployment, {"spec": {"rollout": {"after": when}}})
    return when


async def pause(client: Client, key: Key, *, paused: bool) -> bool:
    """False: it was so already."""
    deployment = await client.get(MachineDeployment, key)
    if bool(deployment.spec.paused) == paused:
        return False
    await _patch(client, deployment, {"spec": {"paused": True if paused else None}})
    return True


async def _patch(client: Client, deployment: MachineDeployment, patch: dict[str, Any]) -> None:
    """For this very object: one of the same name made meanwhile is another."""
    body = {"metadata": {"uid": deployment.metadata.uid}, **patch}
    key = Key(deployment.metadata.namespace, deployment.metadata.name)
    await client.patch(MachineDeployment, key, MergePatch(body), _WRITE)


def progress(deployment: MachineDeployment) -> tuple[bool, str]:
    """Whether the rollout is over, and a sentence about it."""
    name, status = deployment.metadata.name, deployment.status
    wanted = deployment.spec.replicas or 0
    if status.observed_generation < deployment.metadata.generation:
        return False, f"machinedeployment/{name}: the change has not been observed yet"
    fresh, there, working = (n or 0 for n in (status.up_to_date_replicas, status.replicas, status.available_replicas))
    if fresh < wanted:
        return False, f"machinedeployment/{name}: {fresh} of {wanted} replicas are up to date"
    if there > fresh:
        return (
            False,
            f"machinedeployment/{name}: {there - fresh} old replica{'s' if there - fresh > 1 else ''} remaining",
        )
    if working < fresh:
        return False, f"machinedeployment/{name}: {working} of {fresh} up-to-date replicas are available"
    return True, f"machinedeployment/{name} has finished its rollout"


async def follow(client: Client, key: Key) -> AsyncIterator[tuple[bool, MachineDeployment]]:
    """The object at each change of it, until its rollout is over. Raises NotFound."""
    await client.get(MachineDeployment, key)
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    while True:
        async with client.watch(MachineDeployment, query, initial_events=True) as events:
            async for event in events:
                if event.type == "DELETED":
                    raise NotFound(f"MachineDeployment {key.name} was deleted")
                if event.type == "BOOKMARK":
                    continue
                over, _ = progress(event.object)
                yield over, event.object
                if over:
                    return
