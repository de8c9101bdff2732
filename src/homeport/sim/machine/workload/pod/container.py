"""Containers that really work: a simulation registers programs for images.

A program runs while its Pod does and its node is alive. It has what a container has: its arguments, the files of its
ConfigMaps and Secrets, the API of its cluster as the Pod's service account, and the network of its machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson
import structlog

from homeport.apiserver.kinds.pod.log import LogBuffer
from homeport.client.config import Config
from homeport.client.credential import Certificate
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.protocol import Client, Key
from homeport.runtime.clock import Clock
from homeport.sim.machine.workload.kind import SERVICE_ACCOUNT, Json
from homeport.sim.machine.workload.view import View, finished, leaving
from homeport.sim.network import Service

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

log = structlog.get_logger(__name__)

_FIRST_PAUSE = 10.0  # before a program that ended is started again; doubled each time
_LONGEST_PAUSE = 300.0
_TOKEN_SECONDS = 3600
_LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class Program:
    """One container of one Pod, about to be started."""

    pod: Mapping[str, Any]
    container: Mapping[str, Any]
    files: Mapping[str, bytes]  # by their path in the container
    client: Client  # what the Pod's service account may do, and no more
    host: str  # the name of the machine on the simulated network
    clock: Clock
    log: Callable[[str], None] = lambda text: None  # what the container writes
    collect: Callable[[], None] = lambda: None  # starts garbage collection, which few simulated clusters need
    listen: Callable[[int, Service], None] = lambda port, service: None  # answers at a port of the Pod
    ready: Callable[[bool], None] = lambda value: None  # what the readiness probe of the container finds

    @property
    def args(self) -> list[str]:
        return [*(self.container.get("command") or ()), *(self.container.get("args") or ())]


Run = Callable[[Program], Coroutine[Any, Any, None]]
# What to run for a container of a Pod; None: it is one of those that only seem to run.
Programs = Callable[[Mapping[str, Any]], Run | None]


@dataclass(slots=True)
class _Started:
    task: asyncio.Task[None]
    ending: bool = False  # it was asked to, and may still have to say goodbye
    ready: bool = False
    ports: list[tuple[str, int]] = field(default_factory=list)  # addresses and ports that it answers at


@dataclass(slots=True)
class _Restart:
    at: float
    pause: float = _FIRST_PAUSE


@dataclass(slots=True)
class _Log:
    """What `kubectl logs` shows of a container: kept while its Pod is there, over restarts of its program."""

    buffer: LogBuffer
    remove: Callable[[], None]

    def close(self) -> None:
        self.remove()
        self.buffer.close()


@dataclass(slots=True)
class AccountToken:
    """A credential: the Pod's own token, renewed by its kubelet before it ends."""

    cluster: WorkloadCluster
    pod: Mapping[str, Any]
    _header: str = field(default="", repr=False)
    _until: float = 0.0

    async def header(self) -> str:
        now = self.cluster.clock.now()
        if now >= self._until:
            account = self.pod["spec"].get("serviceAccountName") or "default"
            reference = {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": self.pod["metadata"]["name"],
                "uid": self.pod["metadata"]["uid"],
            }
            body = {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_SECONDS, "boundObjectRef": reference},
            }
            key = Key(self.pod["metadata"]["namespace"], account)
            client = self.cluster.client("kubelet")
            made = await client.create(body, kind=SERVICE_ACCOUNT, key=key, subresource="token")
            self._header = f"Bearer {made['status']['token']}"
            self._until = now + 0.8 * _TOKEN_SECONDS
        return self._header

    def certificate(self) -> Certificate | None:
        return None

    def renew(self) -> bool:
        self._until = 0.0
        return True


class Containers:
    """The programs of one cluster. `programs` is set once the cluster has a fleet."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self.programs: Programs | None = None
        self._cluster = cluster
        self._running: dict[tuple[str, str], _Started] = {}  # by the Pod's uid and the container's name
        self._restarts: dict[tuple[str, str], _Restart] = {}
        self._logs: dict[tuple[str, str], _Log] = {}

    def settle(self, view: View) -> None:
        """Starts what should run and does not, and ends what should not run any more."""
        programs = self.programs
        if programs is None:
            return
        wanted: set[tuple[str, str]] = set()
        for pod in view.pods:
            if not _runs(pod) or not view.alive(pod["spec"]["nodeName"]):
                continue
            for container in pod["spec"]["containers"]:
                run = programs(container)
                if run is None:
                    continue
                key = (pod["metadata"]["uid"], container["name"])
                wanted.add(key)
                if key not in self._running:
                    self._start(key, run, pod, container, view)
        for key, started in self._running.items():
            if key not in wanted and not started.ending:
                started.ending = True
                started.task.cancel()
        self._restarts = {key: each for key, each in self._restarts.items() if key in wanted}
        for key in self._logs.keys() - wanted - self._running.keys():
            self._logs.pop(key).close()

    def has_program(self, container: Json) -> bool:
        return self.programs is not None and self.programs(container) is not None

    def unready(self, pod: Json, container: Json) -> bool:
        """Whether the readiness probe of a container fails. Without a probe, or a program to ask, it never does."""
        if not container.get("readinessProbe") or not self.has_program(container):
            return False
        found = self._running.get((pod["metadata"]["uid"], container["name"]))
        return found is None or not found.ready

    def busy(self, pod: Json) -> bool:
        """Whether something of the Pod still runs: its object stays as long as that needs it."""
        return any(uid == pod["metadata"]["uid"] for uid, _ in self._running)

    def _start(self, key: tuple[str, str], run: Run, pod: Json, container: Json, view: View) -> None:
        restart = self._restarts.get(key)
        if restart is not None and restart.at > view.now:
            view.later(restart.at - view.now + 0.1)
            return
        kubelet = self._cluster.kubelets.get(pod["spec"]["nodeName"])
        files = self._files(pod, container)
        if kubelet is None or files is None:
            return  # a ConfigMap or Secret is missing: its coming wakes us
        cluster = self._cluster
        token, name = AccountToken(cluster, pod), cluster.pki.server_name
        client = HttpClient(Config(cluster.server.url, token, cluster.pki.ca_pem, server_name=name))
        output = self._log(key, pod, container)
        program = Program(
            pod,
            container,
            files,
            client,
            kubelet.guest.host.name,
            cluster.clock,
            output.write,
            cluster.loops.start,
            lambda port, service: self._listen(key, pod, port, service),
            lambda value: self._probe(key, value),
        )
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} {container['name']}"
        output.write(f"started on node {pod['spec']['nodeName']}")
        task = asyncio.get_running_loop().create_task(self._run(key, run, program, name), name=name)
        self._running[key] = _Started(task)
        task.add_done_callback(lambda _: self._ended(key))

    def _listen(self, key: tuple[str, str], pod: Json, port: int, service: Service) -> None:
        address = pod["status"]["podIP"]
        self._cluster.pods.listen(address, port, pod["spec"]["nodeName"], service)
        self._running[key].ports.append((address, port))

    def _probe(self, key: tuple[str, str], value: bool) -> None:
        found = self._running.get(key)
        if found is not None and found.ready != value:
            found.ready = value
            self._cluster.controllers.wake()

    def _log(self, key: tuple[str, str], pod: Json, container: Json) -> LogBuffer:
        found = self._logs.get(key)
        if found is None:
            buffer = LogBuffer(limit=_LOG_LINES, clock=self._cluster.clock.now)
            sources, meta = self._cluster.server.builtin.logs, pod["metadata"]
            remove = sources.register(meta["namespace"], meta["name"], container["name"], buffer)
            found = self._logs[key] = _Log(buffer, remove)
        return found.buffer

    async def _run(self, key: tuple[str, str], run: Run, program: Program, name: str) -> None:
        why = "it ended"
        try:
            await run(program)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            log.debug("a simulated container failed", container=name, exc_info=error)
        finally:
            with contextlib.suppress(ApiError):
                await program.client.close()
        log.info("a simulated container ended", container=name, why=why)
        kubelet = self._cluster.kubelets.get(program.pod["spec"]["nodeName"])
        if kubelet is not None:
            kubelet.guest.console.say(f"kubelet: container {name} ended: {why}")
        pause = self._pause(key)
        if (found := self._logs.get(key)) is not None:
            found.buffer.write(f"ended: {why}; it is started again in {pause:g} s")

    def _ended(self, key: tuple[str, str]) -> None:
        ended = self._running.pop(key, None)
        for address, port in ended.ports if ended is not None else ():
            self._cluster.pods.unlisten(address, port)
        self._cluster.controllers.wake()

    def _pause(self, key: tuple[str, str]) -> float:
        before = self._restarts.get(key)
        pause = _FIRST_PAUSE if before is None else min(before.pause * 2, _LONGEST_PAUSE)
        self._restarts[key] = _Restart(self._cluster.clock.now() + pause, pause)
        return pause

    async def close(self) -> None:
        tasks = [started.task for started in self._running.values()]
        for task in tasks:
            if not task.cancelling():  # one that ends already must be left to close its client
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        while self._logs:
            self._logs.popitem()[1].close()

    # -- files -------------------------------------------------------------------------------------------------

    def _files(self, pod: Json, container: Json) -> dict[str, bytes] | None:
        """None: something that it needs is not there yet."""
        found: dict[str, bytes] = {}
        volumes = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
        for mount in container.get("volumeMounts") or ():
            content = self._volume(pod["metadata"]["namespace"], volumes.get(mount["name"]) or {})
            if content is None:
                return None
            folder = mount["mountPath"].rstrip("/")
            for name, data in content.items():
                if mount.get("subPath"):
                    if name == mount["subPath"]:
                        found[folder] = data
                else:
                    found[f"{folder}/{name}"] = data
        return found

    def _volume(self, namespace: str, volume: Json) -> dict[str, bytes] | None:
        for bucket, source, name in (("configmaps", "configMap", "name"), ("secrets", "secret", "secretName")):
            if source not in volume:
                continue
            record = self._cluster.server.store.get(bucket, f"{namespace}/{volume[source].get(name)}")
            if record is None:
                return {} if volume[source].get("optional") else None
            content = dict(_contents(orjson.loads(record.value), plain=bucket == "configmaps"))
            items = volume[source].get("items")
            return (
                content
                if not items
                else {each["path"]: content[each["key"]] for each in items if each["key"] in content}
            )
        return {}


def _runs(pod: Json) -> bool:
    status = pod.get("status") or {}
    return (
        bool(pod["spec"].get("nodeName"))
        and status.get("phase") == "Running"
        and not finished(pod)
        and not leaving(pod)
    )


def _contents(obj: Json, *, plain: bool) -> Iterator[tuple[str, bytes]]:
    for name, text in (obj.get("data") or {}).items():
        yield name, text.encode() if plain else base64.b64decode(text)
    for name, text in (obj.get("binaryData") or {}).items():
        yield name, base64.b64decode(text)
