"""Pods: given a place here if somebody can run them, started, reported on, and ended in good order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from homeport.api.meta import Unstructured
from homeport.apiserver.kinds.pod.log import LogSources
from homeport.builtin.workload.address import pod_loopback_of
from homeport.builtin.workload.container import Container
from homeport.builtin.workload.status import pod_status
from homeport.client.absence import find_object
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key, Write
from homeport.machinery import condition
from homeport.runtime.clock import Clock, rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Wait
from homeport.runtime.task import cancel
from homeport.runtime.workload.kind import POD, deleting, phase, spec_of, status_of
from homeport.runtime.workload.replicaset import write_status
from homeport.runtime.workload.runner import NODE, Runners

log = structlog.get_logger(__name__)

_WRITE = Write(field_manager="homeport-runner")
_SHUTDOWN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class PodServices:
    """What every Pod here uses."""

    client: Any
    runners: Runners
    logs: LogSources
    clock: Clock
    recorder: Recorder
    host: str = "127.0.0.1"  # where node ports answer


class PodRun:
    """One Pod that runs here."""

    def __init__(self, pod: Unstructured, address: str, services: PodServices, changed: Callable[[], None]) -> None:
        self.uid = pod.uid
        self.address = address
        self.ended = asyncio.Event()
        self._services = services
        self._changed = changed
        status = {**status_of(pod), "podIP": address, "podIPs": [{"ip": address}], "hostIP": services.host}
        self._pod = Unstructured({**pod, "status": status})
        spec = spec_of(pod)
        policy = spec.get("restartPolicy", "Always")
        inits = spec.get("initContainers") or ()
        self.inits = [self._container(c, _init_policy(c, policy), "initContainerStatuses") for c in inits]
        self.mains = [self._container(c, policy, "containerStatuses") for c in spec.get("containers") or ()]
        for each in self.inits:
            each.state.sidecar = each.spec.get("restartPolicy") == "Always"
            if policy != "Never" and any(not main.state.ended for main in self.mains):
                each.prepare_again()
        self._stop: asyncio.Task[None] | None = None
        self._grace = 0.0
        self._task = asyncio.create_task(self._drive(), name=f"pod {pod.namespace}/{pod.name}")

    def _container(self, spec: Mapping[str, Any], policy: str, statuses: str) -> Container:
        runner = self._services.runners.find(self._pod, spec)
        assert runner is not None, "a Pod is started only if every container has a runner"
        found = [s for s in status_of(self._pod).get(statuses) or () if s.get("name") == spec["name"]]
        return Container(
            self._pod,
            spec,
            self.address,
            policy,
            runner=runner,
            client=self._services.client,
            logs=self._services.logs,
            clock=self._services.clock,
            changed=self._changed,
            record_event=self._record_event,
            before=found[0] if found else None,
        )

    def _record_event(self, reason: str, message: str, warning: bool) -> None:
        self._services.recorder.record(self._pod, reason, message, warning=warning)

    async def _drive(self) -> None:
        sidecars: list[asyncio.Task[None]] = []
        try:
            for each in self.inits:
                if each.state.sidecar:
                    sidecars.append(asyncio.create_task(each.run()))
                    continue
                await each.run()
                if each.state.exit_code != 0:
                    return
            async with asyncio.TaskGroup() as group:
                for each in self.mains:
                    group.create_task(each.run())
        finally:
            for task in sidecars:
                task.cancel()
            await asyncio.gather(*sidecars, return_exceptions=True)
            self.ended.set()
            self._changed()

    def status(self, pod: Unstructured, now: str) -> dict[str, Any]:
        inits, mains = [c.state for c in self.inits], [c.state for c in self.mains]
        return pod_status(pod, self.address, inits, mains, now, self._services.host)

    def stop(self, grace_seconds: float) -> bool:
        """Begins to end it; `ended` tells when it has. A later call may shorten the grace. False: nothing new."""
        if self._stop is not None and (grace_seconds >= self._grace or self.ended.is_set()):
            return False
        self._grace = grace_seconds
        self._stop = asyncio.create_task(self._end(grace_seconds))
        return True

    async def _end(self, grace_seconds: float) -> None:
        await asyncio.gather(*(each.stop(grace_seconds) for each in (*self.mains, *self.inits)))
        await asyncio.wait([self._task], timeout=_SHUTDOWN_SECONDS)  # they have ended, and say so
        await cancel(self._task)
        self.ended.set()
        self._changed()

    def forget(self) -> None:
        for each in (*self.inits, *self.mains):
            each.forget()


class PodReconciler:
    """`wake(key)` is called when something happened to a Pod that runs."""

    def __init__(self, services: PodServices, wake: Callable[[Key], None]) -> None:
        self._services = services
        self._client = services.client
        self._wake = wake
        self._runs: dict[Key, PodRun] = {}

    async def close(self) -> None:
        """Until cancelled; then everything that runs here ends with this process."""
        try:
            await asyncio.Event().wait()
        finally:
            for run in self._runs.values():
                run.stop(_SHUTDOWN_SECONDS)
            await asyncio.gather(*(run.ended.wait() for run in self._runs.values()))

    async def reconcile(self, key: Key) -> Wait | None:
        pod = await find_object(self._client, POD, key)
        if pod is None:
            return self._release(key, 0.0)
        run = self._runs.get(key)
        if run is not None and run.uid != pod.uid:
            return self._release(key, 0.0) or Wait("PodChanged", after=0.0)
        if deleting(pod):
            return await self._delete(key, pod)
        node = spec_of(pod).get("nodeName")
        if not node:
            return await self._schedule(key, pod)
        if node != NODE or (run is None and phase(pod) in ("Succeeded", "Failed")):
            return None
        return await self._hold(key, pod, run)

    async def _hold(self, key: Key, pod: Unstructured, run: PodRun | None) -> Wait | None:
        if run is None:
            if missing := self._services.runners.missing(pod):
                return Wait("NoRunner", missing)
            run = self._runs[key] = PodRun(pod, self._address(pod), self._services, lambda: self._wake(key))
        status = run.status(pod, rfc3339(self._services.clock.now()))
        await write_status(self._client, POD, pod, status, _WRITE)
        return None

    async def _schedule(self, key: Key, pod: Unstructured) -> Wait | None:
        if spec_of(pod).get("schedulingGates"):
            return None
        missing = self._services.runners.missing(pod)
        if missing:
            now = rfc3339(self._services.clock.now())
            known = status_of(pod)
            held = condition.put(known.get("conditions"), "PodScheduled", "False", "Unschedulable", missing, now=now)
            if held != known.get("conditions"):
                self._services.recorder.record(pod, "FailedScheduling", missing, warning=True)
            await write_status(self._client, POD, pod, {**known, "conditions": held}, _WRITE)
            return Wait("Unschedulable", missing)
        body = {"metadata": {"name": key.name, "uid": pod.uid}, "target": {"kind": "Node", "name": NODE}}
        await self._client.create(body, _WRITE, kind=POD, key=key, subresource="binding")
        message = f"Successfully assigned {key} to {NODE}"
        self._services.recorder.record(pod, "Scheduled", message)
        return None

    async def _delete(self, key: Key, pod: Unstructured) -> Wait | None:
        run = self._runs.get(key)
        if run is None and spec_of(pod).get("nodeName") != NODE:
            return None
        if run is not None and not run.ended.is_set():
            grace = float(pod.metadata.get("deletionGracePeriodSeconds") or 0)
            if run.stop(grace):
                self._services.recorder.record(pod, "Killing", f"Stopping Pod {key}")
            return Wait("Stopping", "waiting for its containers to terminate", quiet=True)
        if run is not None:
            await write_status(self._client, POD, pod, run.status(pod, rfc3339(self._services.clock.now())), _WRITE)
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(POD, key, uid=pod.uid, grace_seconds=0)
        self._release(key, 0.0)
        return None

    def _release(self, key: Key, grace_seconds: float) -> Wait | None:
        run = self._runs.get(key)
        if run is None:
            return None
        if not run.ended.is_set():
            run.stop(grace_seconds)
            return Wait("Stopping", quiet=True)
        run.forget()
        del self._runs[key]
        return None

    def _address(self, pod: Unstructured) -> str:
        """A loopback address of its own, the same after a restart: Pods may use the same ports."""
        if spec_of(pod).get("hostNetwork"):
            return "127.0.0.1"
        used = {run.address for run in self._runs.values()}
        known = status_of(pod).get("podIP")
        if known and known not in used:
            return str(known)
        return pod_loopback_of(pod.uid, used)


def _init_policy(spec: Mapping[str, Any], policy: str) -> str:
    if spec.get("restartPolicy") == "Always":
        return "Always"
    return "Never" if policy == "Never" else "OnFailure"
