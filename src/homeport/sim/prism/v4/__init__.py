"""API v4: one module per namespace, over one envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.core import Core
from homeport.sim.prism.entity import Task
from homeport.sim.prism.imageimport import perform_import
from homeport.sim.prism.power import Power
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.task import Action
from homeport.sim.prism.v4 import clustermgmt, device, iam, image, networking, prism, vmm, volumes

# The newest version that each namespace was published in.
NAMESPACES: Final = {"vmm": 3, "clustermgmt": 3, "networking": 4, "prism": 4, "volumes": 3, "iam": 0}


def add_routes(routes: Routes) -> None:
    for namespace in (vmm, device, image, clustermgmt, networking, prism, volumes, iam):
        namespace.add_routes(routes)
    for name, newest in NAMESPACES.items():
        for method in ("OPTIONS", "GET"):
            routes.add(method, f"/api/{name}/unversioned/info", _info(newest))


def _info(newest: int) -> Callable[[Site, Call], Answer]:
    def respond(site: Site, call: Call) -> Answer:
        del call
        return Answer(200, {"data": f"v4.{min(newest, site.core.newest_minor)}"})

    return respond


def add_actions(core: Core, power: Power) -> None:
    """What tasks of entities other than machines do when they are done."""
    actions: dict[str, Callable[[Core, Task], dict[str, str] | None]] = {
        "image-import": perform_import,
        "image-put": image.perform_put,
        "image-drop": image.perform_drop,
        "subnet-put": networking.perform_put,
        "subnet-drop": networking.perform_drop,
        "subnet-reserve": networking.perform_reserve,
        "subnet-unreserve": networking.perform_unreserve,
        "volume-group-put": volumes.perform_put,
        "volume-group-drop": volumes.perform_drop,
        "volume-group-attach": volumes.perform_attach,
        "volume-group-detach": volumes.perform_detach,
    }
    for name, perform in actions.items():
        power.tasks.on(name, _bound(core, perform))


def _bound(core: Core, perform: Callable[[Core, Task], dict[str, str] | None]) -> Action:
    return lambda task: perform(core, task)
