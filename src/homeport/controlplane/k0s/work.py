"""Carries out what was planned."""

from __future__ import annotations

import structlog

from homeport.api.meta import Unstructured
from homeport.client.protocol import Client, Write
from homeport.controlplane.k0s import child
from homeport.controlplane.k0s.action import Action, Create, Defer, Delete, Hold, Leave, Release, Upgrade
from homeport.controlplane.k0s.autopilot import render_plan
from homeport.controlplane.k0s.machine import Maker
from homeport.controlplane.k0s.observed import Observed
from homeport.controlplane.k0s.scope import K0sPlaneScope
from homeport.controlplane.removal import POLL_SECONDS, MachineRemover, awaits_deletion
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait

log = structlog.get_logger(__name__)


class Worker:
    def __init__(self, write: Write, recorder: Recorder, maker: Maker, remover: MachineRemover) -> None:
        self._write = write
        self._recorder = recorder
        self._maker = maker
        self._remover = remover

    async def carry_out(
        self, scope: K0sPlaneScope, observed: Observed, action: Action, template: Unstructured | Wait
    ) -> Wait | None:
        match action:
            case Create(domain):
                return await self._create(scope, domain, template)
            case Delete(name, why, remediation):
                if remediation:
                    text = f"Machine {name} is unhealthy and is replaced"
                    self._recorder.record(scope.plane, "Remediating", text, warning=True)
                return await self._remover.delete(scope.machine(name), why)
            case Leave(name, member):
                await child.ask_to_leave(_client(scope), member, self._write)
                log.info("etcd member asked to leave", member=member, machine=name)
                return Wait("WaitingForEtcdMemberToLeave", f"waiting for member {member} to leave etcd", after=2.0)
            case Release(name):
                return await self._release(scope, observed, name)
            case Upgrade():
                return await self._upgrade(scope, observed, action)
            case Defer(name, message):
                text = f"Machine {name} is unhealthy and stays for now: {message}"
                return Wait("RemediationDeferred", text, after=POLL_SECONDS)
            case Hold(reason, message):
                return Wait(reason, message, after=POLL_SECONDS)

    async def _create(self, scope: K0sPlaneScope, domain: str, template: Unstructured | Wait) -> Wait:
        if isinstance(template, Wait):
            return template
        made = await self._maker.create(scope, template, domain)
        name = made.metadata.name
        scope.findings.made.add(name)
        log.info("machine created", machine=name, domain=domain)
        return Wait("WaitingForMachine", f"waiting for Machine {name} to come up", after=POLL_SECONDS)

    async def _release(self, scope: K0sPlaneScope, observed: Observed, name: str) -> Wait:
        """What k0s keeps of it goes first: nobody looks for it once the Machine is gone."""
        machine = next(each for each in observed.machines if each.name == name)
        if scope.remote is not None and not observed.down and not machine.member and observed.voters:
            await child.forget_controller(scope.remote.client, name)
        await self._remover.drop_hook(scope.machine(name))
        return awaits_deletion(name)

    async def _upgrade(self, scope: K0sPlaneScope, observed: Observed, action: Upgrade) -> Wait:
        client, spec = _client(scope), scope.plane.spec
        if action.replace:
            await child.drop_plan(client)
        body = render_plan(
            observed.version,
            action.targets,
            owner=scope.plane.metadata.uid,
            now=scope.now,
            url=spec.k0s_config_spec.download_url,
        )
        await child.put_plan(client, body, self._write)
        text = f"k0s upgrades {', '.join(action.targets)} to {observed.version}"
        self._recorder.record(scope.plane, "Updating", text)
        return Wait("Updating", text, after=POLL_SECONDS)


def _client(scope: K0sPlaneScope) -> Client:
    assert scope.remote is not None  # nothing of the kind is planned while the cluster can't be reached
    return scope.remote.client
