"""How a running plane is: for `homeport status`, the live view and the answer to "why is it stuck"."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.app.description import ControllerState, Description, PartState, SimulatorState, Unfinished
from homeport.app.part import Part
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager

_SHOWN = 100  # unfinished objects per controller; their number is told in any case


def describe(
    parts: Iterable[Part],
    managers: Iterable[Manager],
    *,
    objects: dict[str, int],
    revision: int = 0,
    requests: int = 0,
    simulators: Iterable[SimulatorState] = (),
) -> Description:
    managers = list(managers)
    return Description(
        revision,
        objects,
        requests,
        [describe_part(part) for part in parts],
        [_controller(controller) for manager in managers for controller in manager.controllers],
        {kind: why for manager in managers for kind, why in manager.health().items()},
        list(simulators),
    )


def describe_part(part: Part) -> PartState:
    return PartState(part.name, part.state, part.crashes, part.error, round(part.retry_in, 1))


def cached(managers: Iterable[Manager]) -> dict[str, int]:
    """Objects in the caches, by kind."""
    found: dict[str, int] = {}
    for manager in managers:
        for informer in manager.informers:
            name = informer.resource.qualified
            found[name] = max(found.get(name, 0), len(informer.cache))
    return found


def _controller(controller: Controller) -> ControllerState:
    counts = controller.metrics.counts
    # What failed last says more than what it waited for before that.
    found = {key: Unfinished(str(key), "Failed", why) for key, why in controller.failed.items()}
    for key, wait in controller.waits.items():
        if key not in found and not wait.quiet:
            found[key] = Unfinished(str(key), wait.reason, wait.message)
    return ControllerState(
        name=controller.name,
        queue=len(controller.queue),
        delayed=controller.queue.delayed,
        held=len(controller.held),
        reconciles=sum(counts.values()),
        errors=counts["error"],
        unfinished_count=len(found),
        unfinished=list(found.values())[:_SHOWN],
    )
