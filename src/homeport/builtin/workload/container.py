"""One container of a Pod through all its starts: prepared, started, watched, restarted after a growing pause."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from homeport.apiserver.kinds.pod.log import LogBuffer, LogSources
from homeport.builtin.workload.material import Material, MissingMaterial, command_of
from homeport.builtin.workload.probe import Probe
from homeport.builtin.workload.status import ContainerState
from homeport.runtime.clock import Clock, parse_time, rfc3339
from homeport.runtime.workload.runner import Launch, Mount, RunError, Runner, Running

_FIRST_PAUSE, _LONGEST_PAUSE = 10.0, 300.0
_STEADY_SECONDS = 600.0  # after that long the next pause is the shortest again
_MATERIAL_SECONDS = 2.0
_CANT_START = 128

RecordEvent = Callable[[str, str, bool], None]  # (reason, message, warning): an Event of the Pod


class Container:
    def __init__(
        self,
        pod: Mapping[str, Any],
        spec: Mapping[str, Any],
        address: str,
        policy: str,
        *,
        runner: Runner,
        client: Any,
        logs: LogSources,
        clock: Clock,
        changed: Callable[[], None],
        record_event: RecordEvent,
        before: Mapping[str, Any] | None = None,
    ) -> None:
        self.spec = spec
        self.policy = policy
        meta = pod["metadata"]
        self.state = ContainerState(spec["name"], spec.get("image", ""), meta["uid"])
        self.running: Running | None = None
        self._pod = pod
        self._address = address
        self._runner = runner
        self._client = client
        self._logs = logs
        self._clock = clock
        self._changed = changed
        self._record_event = record_event
        self._pauses = 0
        self._stopping = asyncio.Event()
        self._health: dict[str, bool] = {}
        self._killing: asyncio.Task[None] | None = None
        self._buffer = LogBuffer(clock=clock.now)
        self._unregister: list[Callable[[], None]] = []
        if before is not None:
            self._resume(before)

    def _resume(self, before: Mapping[str, Any]) -> None:
        """It ran before this process did: that start is lost, this is the next one."""
        self.state.restarts = int(before.get("restartCount") or 0)
        self.state.last = dict(before.get("lastState") or {})
        state = before.get("state") or {}
        if ended := state.get("terminated"):
            self.state.state = dict(state)
            self.state.ended = not self._again(int(ended["exitCode"]))
        elif running := state.get("running"):
            message = "The container could not be located when Homeport was restarted"
            lost = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": message}
            times = {"startedAt": running.get("startedAt"), "finishedAt": rfc3339(self._clock.now())}
            self.state.last = {"terminated": {**lost, **times}}
            self.state.restarts += 1

    def prepare_again(self) -> None:
        """An init container that ended well before this process did. What it prepared may be gone, as on a node that
        was restarted: there, too, init containers run again."""
        if self.state.ended and self.state.exit_code == 0:
            self.state.last = dict(self.state.state)
            self.state.restarts += 1
            self.state.ended = False

    async def run(self) -> None:
        """Runs until the container has ended and will not be restarted."""
        while not self.state.ended and not self._stopping.is_set():
            await self._start_once()
            if self.state.ended or self._stopping.is_set():
                return
            await self._pause()

    async def _start_once(self) -> None:
        self._wait("ContainerCreating")
        self._open_log()
        started = rfc3339(self._clock.now())
        message = ""
        try:
            launch = await self._prepare()
            self.running = await self._runner.run(launch)
        except Exception as error:  # the edge to foreign code: a runner's fault is the container's, not ours
            self._buffer.write(str(error))
            code, message = _CANT_START, str(error)
            self._record_event("Failed", f"Error: {error}", True)
        else:
            code = await self._watch(self.running, launch, started)
        self._end(code, started, message)

    async def _prepare(self) -> Launch:
        material = Material(self._client, self._pod)
        while not self._stopping.is_set():
            try:
                env = await material.env(self.spec)
                mounts = await material.mounts(self.spec)
                return self._launch(env, mounts)
            except MissingMaterial as missing:
                self._wait("CreateContainerConfigError", str(missing))
                await self._sleep(_MATERIAL_SECONDS)
                material = Material(self._client, self._pod)
        raise RunError("it was stopped before it could be started")

    def _launch(self, env: Mapping[str, str], mounts: Sequence[Mount]) -> Launch:
        return Launch(
            pod=self._pod,
            container=self.spec,
            command=command_of(self.spec, env),
            env=env,
            mounts=mounts,
            address=self._address,
            attempt=self.state.restarts,
            log=self._buffer.write,
            changed=self._judge,
        )

    async def _watch(self, running: Running, launch: Launch, started: str) -> int:
        self.state.state = {"running": {"startedAt": started}}
        self._record_event("Started", f"Started container {self.state.name}", False)
        self._health = {
            "startupProbe": "startupProbe" not in self.spec,
            "readinessProbe": "readinessProbe" not in self.spec,
        }
        probes = [asyncio.create_task(each) for each in self._probes(running)]
        self._judge()
        try:
            return await running.wait()
        finally:
            for probe in probes:
                probe.cancel()
            await asyncio.gather(*probes, return_exceptions=True)

    # -- health -------------------------------------------------------------------------------------------------

    def _probes(self, running: Running) -> list[Coroutine[Any, Any, None]]:
        def hear(kind: str) -> Callable[[bool], None]:
            return lambda good: self._heard(kind, good)

        probes: list[Coroutine[Any, Any, None]] = []
        for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
            if kind in self.spec:
                probe = Probe(self.spec[kind], self.spec, self._address, running, hear(kind))
                probes.append(self._probe_when_started(kind, probe))
        return probes

    async def _probe_when_started(self, kind: str, probe: Probe) -> None:
        while kind != "startupProbe" and not self._health["startupProbe"]:  # noqa: ASYNC110  (probes poll by nature)
            await asyncio.sleep(1.0)
        await probe.run(once=kind == "startupProbe")

    def _heard(self, kind: str, good: bool) -> None:
        if kind != "livenessProbe" and not (kind == "startupProbe" and not good):
            self._health[kind] = good
            self._judge()
            return
        if not good and self.running is not None:
            name = "Liveness" if kind == "livenessProbe" else "Startup"
            self._record_event("Unhealthy", f"{name} probe failed", True)
            self._record_event(
                "Killing", f"Container {self.state.name} failed {name.lower()} probe, will be restarted", False
            )
            grace = float(self._pod["spec"].get("terminationGracePeriodSeconds", 30))
            self._killing = asyncio.create_task(self.running.stop(grace))

    def _judge(self) -> None:
        running = self.running if "running" in self.state.state else None
        started = running is not None and self._health["startupProbe"]
        ready = started and self._health["readinessProbe"] and running is not None and running.ready
        self.state.started, self.state.ready = started, ready
        self._changed()

    # -- ends ---------------------------------------------------------------------------------------------------

    def _end(self, code: int, started: str, message: str) -> None:
        now = self._clock.now()
        reason = "Completed" if code == 0 else "StartError" if code == _CANT_START and message else "Error"
        ended: dict[str, Any] = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": rfc3339(now)}
        if message:
            ended["message"] = message
        self.running = None
        self._buffer.close()
        self.state.state = {"terminated": ended}
        self.state.started = self.state.ready = False
        self.state.ended = self._stopping.is_set() or not self._again(code)
        if now - parse_time(started) > _STEADY_SECONDS:
            self._pauses = 0
        self._changed()

    def _again(self, code: int) -> bool:
        return self.policy == "Always" or (self.policy == "OnFailure" and code != 0)

    async def _pause(self) -> None:
        """The first restart is immediate; then ten seconds, twenty, up to five minutes."""
        self.state.last = {"terminated": self.state.state["terminated"]}
        if self._pauses:
            seconds = min(_FIRST_PAUSE * 2 ** (self._pauses - 1), _LONGEST_PAUSE)
            meta = self._pod["metadata"]
            where = f"container={self.state.name} pod={meta['name']}_{meta['namespace']}({meta['uid']})"
            self._wait("CrashLoopBackOff", f"back-off {seconds:.0f}s restarting failed {where}")
            self._record_event("BackOff", f"Back-off restarting failed container {self.state.name}", True)
            await self._sleep(seconds)
        self._pauses += 1
        self.state.restarts += 1

    async def _sleep(self, seconds: float) -> None:
        """Less, if it is stopped meanwhile."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _wait(self, reason: str, message: str = "") -> None:
        state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        if self.state.state != state:
            self.state.state = state
            self._changed()

    async def stop(self, grace_seconds: float) -> None:
        self._stopping.set()
        if self.running is not None:
            await self.running.stop(grace_seconds)

    # -- logs ---------------------------------------------------------------------------------------------------

    def _open_log(self) -> None:
        meta = self._pod["metadata"]
        where = (meta["namespace"], meta["name"], self.state.name)
        self.forget_log()
        if self.state.restarts:
            self._unregister.append(self._logs.register(*where, self._buffer, previous=True))
            self._buffer = LogBuffer(clock=self._clock.now)
        self._unregister.append(self._logs.register(*where, self._buffer))

    def forget(self) -> None:
        self.forget_log()
        self._runner.forget(self.state.uid)

    def forget_log(self) -> None:
        for unregister in self._unregister:
            with contextlib.suppress(KeyError):
                unregister()
        self._unregister.clear()
