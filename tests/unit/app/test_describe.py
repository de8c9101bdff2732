"""What a plane tells about itself, from real controllers."""

from __future__ import annotations

import asyncio

from homeport.api.meta import Resource
from homeport.app.report.describe import describe
from homeport.app.report.part import Part
from homeport.client.protocol import Key
from homeport.runtime.controller import Controller
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.testing import plane, virtual

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


class ByName:
    """The name of an object decides its fate."""

    async def reconcile(self, key: Key) -> Wait | None:
        match key.name:
            case "waiting":
                return Wait("WaitingForTea", "the kettle is on")
            case "timer":
                return Wait("Timer", after=3600.0, quiet=True)
            case "broken":
                raise RuntimeError("no tea")
            case "hopeless":
                raise Terminal("NoCups", "there are no cups")
        return None


@virtual
async def test_unfinished_objects_are_reported_with_their_reasons_and_timers_are_not() -> None:
    async with plane(lambda p: p.manager.add(Controller("tea", CONFIG_MAP, ByName()))) as p:
        for name in ("waiting", "timer", "broken", "hopeless", "fine"):
            await p.have({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        await asyncio.sleep(1.0)
        found = describe([Part("controllers", p.manager.run)], [p.manager], objects={"configmaps": 5}, revision=7)
    (tea,) = found.controllers
    assert {(item.kind, item.object, item.reason, item.message) for item in tea.unfinished} == {
        ("ConfigMap", "default/waiting", "WaitingForTea", "the kettle is on"),
        ("ConfigMap", "default/broken", "Failed", "RuntimeError: no tea"),
        ("ConfigMap", "default/hopeless", "NoCups", "there are no cups"),
    }
    assert {(each.kind, each.object) for each in found.stuck} == {
        ("ConfigMap", "default/broken"),
        ("ConfigMap", "default/hopeless"),
    }
    assert [(each.object, each.message) for each in found.under_way] == [("default/waiting", "the kettle is on")]
    assert tea.unfinished_count == 3
    assert tea.errors > 1
    assert tea.delayed == 2  # the timer, and the broken one until its next try
    assert found.parts[0].state == "starting"
