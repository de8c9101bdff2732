"""API v3: intent entities, over the same world as v4."""

from __future__ import annotations

from homeport.sim.prism.site import Routes
from homeport.sim.prism.v3 import category, cluster, image, project, subnet, task, vm
from homeport.sim.prism.v3.envelope import refused

__all__ = ["add_routes", "refused"]


def add_routes(routes: Routes) -> None:
    for part in (vm, cluster, subnet, image, project, task, category):
        part.add_routes(routes)
