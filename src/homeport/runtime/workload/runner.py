"""Runners: the registry of what can run containers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

NODE = "homeport"  # spec.nodeName of Pods that the plane runs; there is no Node of that name
# A Pod may say who is to run its containers.
RUNNER_ANNOTATION = "workload.homeport.dev/runner"

Match = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]  # (pod, container)


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume of a container. `files` (ConfigMaps, Secrets, ...) have their content here; folders are the runner's."""

    path: str
    kind: Literal["files", "empty", "claim", "host"]
    name: str  # the volume, the claim or the folder on this machine
    files: Mapping[str, bytes] = field(default_factory=dict)  # relative path > content
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of one container, with everything that it refers to looked up."""

    pod: Mapping[str, Any]
    container: Mapping[str, Any]
    command: Sequence[str]  # command and args, variables expanded; empty: what the image would do
    env: Mapping[str, str]
    mounts: Sequence[Mount]
    address: str  # the Pod's own, on loopback
    attempt: int  # 0 for the first start, then the number of restarts
    log: Callable[[str], None]  # what the container writes
    changed: Callable[[], None]  # to be called when `ready` of what runs changes

    @property
    def files(self) -> dict[str, bytes]:
        """Every file of ConfigMaps, Secrets and the like, by its path in the container."""
        return {f"{m.path.rstrip('/')}/{name}": data for m in self.mounts for name, data in m.files.items()}


class Running(Protocol):
    """A container that was started. It ends by itself or is stopped; restarts are new starts."""

    @property
    def ready(self) -> bool:
        """Whether it can be used. Probes of the container are asked besides."""

    async def wait(self) -> int:
        """Returns the exit code when it has ended, also after `stop`. May be awaited more than once."""

    async def stop(self, grace_seconds: float) -> None:
        """Asks it to end, and ends it after `grace_seconds`. Returns when it has ended."""

    async def probe(self, command: Sequence[str]) -> bool:
        """Runs a command beside it, for probes of that kind; True if it ends well."""


class Runner(Protocol):
    async def run(self, launch: Launch) -> Running:
        """Starts the container. Raises RunError if that is not possible."""

    def forget(self, uid: str) -> None:
        """The Pod with this UID is deleted: releases everything that was kept for it."""

    def forget_claim(self, namespace: str, name: str) -> None:
        """The claim is deleted: releases what was kept in it."""


class RunError(Exception):
    """A container can't be started; the text goes into the Pod's status."""


class Runners:
    """In the order of registration: the first that takes a container runs it."""

    def __init__(self) -> None:
        self._runners: list[tuple[str, Runner, Match]] = []

    def register(self, name: str, runner: Runner, *, images: Sequence[str] = (), match: Match | None = None) -> None:
        """`images`: patterns such as `*/kube-apiserver:*`. `match`: any other test. Neither: only by annotation."""
        if any(known == name for known, _, _ in self._runners):
            raise ValueError(f"there is a runner {name!r} already")
        patterns = tuple(images)

        def takes(pod: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
            image = str(container.get("image", ""))
            return any(fnmatch.fnmatchcase(image, p) for p in patterns) or (match is not None and match(pod, container))

        self._runners.append((name, runner, takes))

    def extend(self, others: Runners) -> None:
        """Adds all of `others`, after those that are here."""
        for name, runner, takes in others._runners:
            self.register(name, runner, match=takes)

    def find(self, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Runner | None:
        chosen = ((pod.get("metadata") or {}).get("annotations") or {}).get(RUNNER_ANNOTATION)
        for name, runner, takes in self._runners:
            if name == chosen or (chosen is None and takes(pod, container)):
                return runner
        return None

    def forget_claim(self, namespace: str, name: str) -> None:
        for _, runner, _ in self._runners:
            runner.forget_claim(namespace, name)

    def missing(self, pod: Mapping[str, Any]) -> str:
        """Why the Pod can't run here, and what to do; '' if it can."""
        chosen = ((pod.get("metadata") or {}).get("annotations") or {}).get(RUNNER_ANNOTATION)
        known = ", ".join(name for name, _, _ in self._runners) or "none"
        if chosen is not None and all(name != chosen for name, _, _ in self._runners):
            return f"no runner {chosen!r} (annotation {RUNNER_ANNOTATION}): registered are {known}"
        spec = pod.get("spec") or {}
        for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
            if self.find(pod, container) is None:
                return (
                    f"no runner for image {container.get('image', '')!r} of container {container.get('name', '')!r}: "
                    f"register one for it, or choose one with the annotation {RUNNER_ANNOTATION} "
                    f"(registered: {known})"
                )
        return ""
