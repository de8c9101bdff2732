"""A runner for containers that are coroutines of this process: simulated components, and tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from homeport.runtime.task import cancel
from homeport.runtime.workload.runner import Launch

Main = Callable[[Launch, "ContainerHandle"], Awaitable[int | None]]


class ContainerHandle:
    """What the coroutine holds of its container: `ready()` when it can be used, `stopping` when it is asked to end."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self.stopping = asyncio.Event()
        self.is_ready = False

    def ready(self, value: bool = True) -> None:
        if self.is_ready != value:
            self.is_ready = value
            self._launch.changed()


class CoroutineRunner:
    """`main(launch, inside)` is the container: what it returns (or 0) is the exit code, an exception is exit code 1.

    With `ready_at_start` False it is ready only after `inside.ready()`.
    """

    def __init__(self, main: Main, *, ready_at_start: bool = True) -> None:
        self._main = main
        self._ready_at_start = ready_at_start

    async def run(self, launch: Launch) -> CoroutineContainer:
        inside = ContainerHandle(launch)
        inside.is_ready = self._ready_at_start
        return CoroutineContainer(self._main, launch, inside)

    def forget(self, uid: str) -> None:
        """Nothing is kept."""

    def forget_claim(self, namespace: str, name: str) -> None:
        """Nothing is kept."""


class CoroutineContainer:
    def __init__(self, main: Main, launch: Launch, inside: ContainerHandle) -> None:
        self._inside = inside
        self._task = asyncio.create_task(_outcome(main, launch, inside))

    @property
    def ready(self) -> bool:
        return self._inside.is_ready

    async def wait(self) -> int:
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._task.cancelled():
                return 137
            raise

    async def stop(self, grace_seconds: float) -> None:
        self._inside.stopping.set()
        await asyncio.wait([self._task], timeout=max(grace_seconds, 0.0))
        await cancel(self._task)

    async def probe(self, command: Sequence[str]) -> bool:
        return not self._task.done()


async def _outcome(main: Main, launch: Launch, inside: ContainerHandle) -> int:
    """The edge to foreign code: whatever it raises is its own failure, not ours."""
    try:
        return int(await main(launch, inside) or 0)
    except Exception as error:
        launch.log(f"{type(error).__name__}: {error}")
        return 1


async def until_stopped(launch: Launch, inside: ContainerHandle) -> int:
    """The simplest container: reports that it runs, and runs until it is stopped."""
    launch.log(f"{launch.container.get('name')} runs as attempt {launch.attempt}")
    await inside.stopping.wait()
    return 0
