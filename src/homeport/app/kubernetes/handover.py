"""The end of a pivot: the controllers of the old plane are off, and those in the new cluster start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from homeport.app.kubernetes.install import InstallError, install, publish
from homeport.app.kubernetes.plan import Plan
from homeport.app.kubernetes.rollout import await_available
from homeport.app.plane.instance import STATUS_PATH
from homeport.app.report.description import Description
from homeport.client.errors import Forbidden, MethodNotAllowed, NotFound
from homeport.client.protocol import Client
from homeport.client.wire.rest import RestClient
from homeport.runtime.clock import Clock, SystemClock

_POLL_SECONDS = 1.0
_OFF_SECONDS = 60.0
_CONTROLLERS = ("controllers", "worker ")  # parts of a plane that work on objects

Say = Callable[[str], None]


async def hand_over(
    source: Client, target: RestClient, plan: Plan, say: Say, seconds: float, clock: Clock | None = None
) -> None:
    """Installs the controllers in the cluster that everything has moved into, and waits until they are available.

    Nothing is installed before the controllers of the old plane have stopped: no two sets of controllers work at the
    same time. Repeat it after any failure. Raises InstallError and ApiError.
    """
    clock = clock or SystemClock()
    await await_off(source, clock)
    say("installing the controllers in the cluster")
    await install(target, plan, say)
    await await_available(target, plan.placements, say, seconds, clock)
    await publish(target, plan.platform)  # the replicas do so, too; who waits finds it there


async def await_off(source: Client, clock: Clock) -> None:
    """Until the plane reports that its controllers are off. Raises InstallError when that takes too long."""
    until = clock.monotonic() + _OFF_SECONDS
    while working := still_working(await describe_plane(source)):
        if clock.monotonic() > until:
            text = f"the old plane has stepped back, but parts of it still work: {', '.join(working)}"
            raise InstallError(f"{text}. See its log, and run this again")
        await asyncio.sleep(_POLL_SECONDS)


def still_working(plane: Description | None) -> list[str]:
    """Names of the parts that may change objects. None: not a plane of `homeport up`, nothing says what it does."""
    if plane is None:
        return []
    idle = ("following", "stopped") if plane.standby else ("stopped",)
    return [part.name for part in plane.parts if part.name.startswith(_CONTROLLERS) and part.state not in idle]


async def describe_plane(source: Client) -> Description | None:
    if not isinstance(source, RestClient):
        return None
    try:
        body = (await source.raw("POST", STATUS_PATH)).check(STATUS_PATH)
    except (NotFound, Forbidden, MethodNotAllowed):
        return None
    return msgspec.json.decode(body, type=Description)
