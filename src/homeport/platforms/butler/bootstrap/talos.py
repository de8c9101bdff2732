"""Talks to Talos on the machines: sends configurations, and starts etcd once."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

from homeport.api.butler.v1alpha1 import ClusterBootstrap
from homeport.bootstrap.talos.client import Refused, TalosApi, TalosError, Untrusted, connect, connect_maintenance
from homeport.capi.remote import pki
from homeport.client.dial import DialOptions
from homeport.client.protocol import Client, MergePatch, Write
from homeport.machinery.talos.certificate import make_client
from homeport.machinery.talos.config import ConfigError
from homeport.platforms.butler.bootstrap import state
from homeport.platforms.butler.bootstrap.name import ETCD_ANNOTATION
from homeport.platforms.butler.bootstrap.plan import MachinePlan, PlaneSeen, Start, plan_etcd
from homeport.platforms.butler.bootstrap.scope import BootstrapScope
from homeport.platforms.butler.bootstrap.secret import machine_config
from homeport.platforms.butler.tenant.state import Finding
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 5.0
_ETCD = "etcd"


class Talos:
    def __init__(self, client: Client, write: Write, clock: Clock, dial: DialOptions) -> None:
        self._client = client
        self._write = write
        self._clock = clock
        self._dial = dial

    # -- configuration ---------------------------------------------------------------------------------------------

    async def configure(self, scope: BootstrapScope) -> Wait | None:
        """A phase. Without a virtual address the endpoint of the cluster is that of its only control plane, which is
        known once the machine runs: that machine is sent its configuration. All others boot with theirs."""
        if not scope.model.vip and not scope.initialized:
            wait = await self._send(scope, scope.control_planes[0])
            if wait is not None:
                return self._note(scope, Finding(state.TALOS, wait.reason, wait.message), wait)
        return self._note(scope, Finding(state.TALOS))

    async def _send(self, scope: BootstrapScope, plan: MachinePlan) -> Wait | None:
        address = scope.children.machines[plan.name].status.ip_address
        try:
            try:
                async with self._connect(scope, address) as api:
                    await api.version()
                return None  # it has a certificate of this cluster, so it has its configuration
            except Untrusted:
                async with connect_maintenance(address, self._dial) as api:
                    await api.apply(machine_config(scope, plan).encode())
        except ConfigError as broken:
            return Wait("InvalidConfiguration", f"spec.{broken}", warning=True)
        except Refused as refused:
            return Wait(
                "ConfigurationRefused", f"{plan.name}: {refused}", after=_LOOK_SECONDS, warning=not refused.later
            )
        except TalosError as error:
            return Wait("WaitingForTalos", f"{plan.name}: {error}", after=_LOOK_SECONDS)
        return Wait("WaitingForTalos", f"{plan.name} starts with its configuration", after=_LOOK_SECONDS)

    # -- etcd ------------------------------------------------------------------------------------------------------

    async def start_etcd(self, scope: BootstrapScope) -> Wait | None:
        """A phase."""
        if scope.initialized:
            return None
        seen = await asyncio.gather(*(self._look(scope, each) for each in scope.control_planes))
        step = plan_etcd(seen, scope.etcd_mark, initialized=scope.initialized)
        if isinstance(step, Start):
            await self._mark(scope, step.plane)
            step = await self._start(scope, step.plane)
        if step is None:
            return None
        return self._note(scope, Finding(state.CONTROL_PLANE, step.reason, step.message), step)

    async def _look(self, scope: BootstrapScope, plan: MachinePlan) -> PlaneSeen:
        request = scope.children.machines[plan.name]
        uid = request.metadata.uid
        try:
            async with self._connect(scope, request.status.ip_address) as api:
                services = await api.services()
        except TalosError as error:
            return PlaneSeen(plan.name, uid, trouble=str(error))
        return PlaneSeen(plan.name, uid, etcd=any(each.name == _ETCD and each.state == "Running" for each in services))

    async def _mark(self, scope: BootstrapScope, plane: PlaneSeen) -> None:
        """Before the call: whoever continues after us must ask the same machine."""
        if scope.etcd_mark == plane.mark:
            return
        meta = scope.object.metadata
        body = {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": {ETCD_ANNOTATION: plane.mark}}
        patch = MergePatch({"metadata": body})
        scope.update_metadata(await self._client.patch(ClusterBootstrap, scope.key, patch, self._write))

    async def _start(self, scope: BootstrapScope, plane: PlaneSeen) -> Wait | None:
        address = scope.children.machines[plane.name].status.ip_address
        try:
            async with self._connect(scope, address) as api:
                await api.bootstrap()
        except Refused as refused:
            text = f"{plane.name} does not start etcd: {refused}"
            return Wait("EtcdNotStarted", text, after=_LOOK_SECONDS, warning=not refused.later)
        except TalosError as error:
            return Wait("WaitingForTalos", f"{plane.name}: {error}", after=_LOOK_SECONDS)
        return Wait("StartingEtcd", f"etcd starts on {plane.name}", after=_LOOK_SECONDS)

    # -- both ------------------------------------------------------------------------------------------------------

    def _connect(self, scope: BootstrapScope, address: str) -> AbstractAsyncContextManager[TalosApi]:
        client = make_client(scope.bundle.os, pki.moment(self._clock.now()))
        return connect(address, scope.bundle.os.certificate, client, self._dial)

    def _note(self, scope: BootstrapScope, finding: Finding, wait: Wait | None = None) -> Wait | None:
        scope.note(finding, rfc3339(self._clock.now()))
        return wait
