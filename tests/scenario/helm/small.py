"""Small charts for tests, as files, and a cluster in memory whose Jobs are done when the test says so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from homeport.api.meta import Resource
from homeport.client.errors import Timeout, Unavailable
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.helm.release.desired import Desired
from homeport.helm.release.operation import Outcome
from homeport.helm.release.releases import Releases
from homeport.runtime.testing import Plane, plane

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
JOB = Resource("batch", "v1", "Job", "jobs")
SECRET = Resource("", "v1", "Secret", "secrets")
WRITES = ("create", "replace", "patch", "apply", "delete")


def config_map(name: str, value: str = "1", annotations: Mapping[str, str] | None = None) -> str:
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name}"]
    if annotations:
        lines += ["  annotations:", *(f'    {key}: "{text}"' for key, text in annotations.items())]
    return "\n".join([*lines, "data:", f'  value: "{value}"', ""])


def job(name: str, hook: str, weight: int = 0, policy: str = "") -> str:
    lines = ["apiVersion: batch/v1", "kind: Job", "metadata:", f"  name: {name}", "  annotations:"]
    lines += [f"    helm.sh/hook: {hook}", f'    helm.sh/hook-weight: "{weight}"']
    if policy:
        lines.append(f"    helm.sh/hook-delete-policy: {policy}")
    lines += ["spec:", "  template:", "    spec:", "      restartPolicy: Never", "      containers:"]
    lines += ["      - name: main", "        image: example.com/job:1", ""]
    return "\n".join(lines)


def chart(templates: Mapping[str, str], version: str = "1.0.0") -> dict[str, bytes]:
    made = {"Chart.yaml": f"apiVersion: v2\nname: buoy\nversion: {version}\n"}
    made |= {f"templates/{name}.yaml": text for name, text in templates.items()}
    return {path: text.encode() for path, text in made.items()}


def desired(files: Mapping[str, bytes], **more: Any) -> Desired:
    return Desired("web", "default", files, **more)


class Killed(Unavailable):
    """The process died."""


class Mortal:
    """A client that dies right after its `life`th write, and does nothing after that."""

    def __init__(self, inner: Client, life: int) -> None:
        self._inner = inner
        self._left = life
        for name in WRITES:
            setattr(self, name, self._counted(getattr(inner, name)))

    def _counted(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def write(*args: Any, **kwargs: Any) -> Any:
            if self._left == 0:
                raise Killed("this process was killed")
            self._left -= 1
            made = await send(*args, **kwargs)
            if self._left == 0:
                raise Killed("this process was killed")
            return made

        return write

    def __getattr__(self, name: str) -> Any:
        if self._left == 0:
            raise Killed("this process was killed")
        return getattr(self._inner, name)


class Flaky:
    """A client whose calls fail now and then, before or after the server did what they ask for."""

    def __init__(self, inner: Client, rng: random.Random, share: float) -> None:
        self._inner = inner
        for name in (*WRITES, "get", "list", "raw"):
            setattr(self, name, self._unsure(getattr(inner, name), rng, share))

    def _unsure(self, send: Callable[..., Any], rng: random.Random, share: float) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            if rng.random() < share / 2:
                raise Unavailable("the request was lost")
            answer = await send(*args, **kwargs)
            if rng.random() < share / 2:
                raise Timeout("the answer was lost")
            return answer

        return call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Cluster:
    """A server in memory, and what a user does with it."""

    def __init__(self, made: Plane) -> None:
        self.plane = made
        self.client = made.client
        self.releases = Releases(made.client, made.clock)
        self.jobs: list[str] = []  # names of Jobs in the order in which they were completed

    def dying(self, life: int) -> Releases:
        client: Any = Mortal(self.client, life)
        return Releases(client, self.plane.clock)

    def flaky(self, seed: int, share: float = 0.1) -> Releases:
        client: Any = Flaky(self.client, random.Random(seed), share)
        return Releases(client, self.plane.clock)

    async def finish(self, condition: str = "Complete") -> None:
        """Every Job that runs ends."""
        for found in (await self.client.list(JOB, Query(namespace="default"))).items:
            if (found.get("status") or {}).get("conditions"):
                continue
            now = "2026-01-01T00:00:00Z"
            conditions = [
                {"type": kind, "status": "True", "lastTransitionTime": now, "lastProbeTime": now}
                for kind in (
                    ("SuccessCriteriaMet", "Complete") if condition == "Complete" else ("FailureTarget", "Failed")
                )
            ]
            status: dict[str, Any] = {"conditions": conditions, "startTime": now}
            if condition == "Complete":
                status |= {"completionTime": now, "succeeded": 1}
            await self.client.patch(
                JOB, Key("default", found.name), MergePatch({"status": status}), subresource="status"
            )
            self.jobs.append(found.name)

    async def until_done(self, call: Callable[[], Any]) -> Outcome:
        """Calls again and again while Jobs end in between."""
        for _ in range(100):
            outcome: Outcome = await call()
            if outcome.wait is None:
                return outcome
            await self.finish()
            await asyncio.sleep(outcome.wait.after or 1)
        raise AssertionError(f"never done: {outcome.wait}")

    async def names(self, kind: Resource = CONFIG_MAP) -> set[str]:
        listed = await self.client.list(kind, Query(namespace="default"))
        return {each.name for each in listed.items if each.name != "kube-root-ca.crt"}

    async def value(self, name: str) -> str:
        return str((await self.client.get(CONFIG_MAP, Key("default", name)))["data"]["value"])

    async def statuses(self) -> list[str]:
        return [each.status for each in await self.releases.history("default", "web")]


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    async with plane() as made:
        yield Cluster(made)
