"""The simulators as pages of the plane's own API: their worlds, faults, journals and consoles.

The path is not a resource: RBAC grants it as `nonResourceURLs`, as it does for other paths of the plane.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import orjson

from homeport.app.simulation.simulation import Simulation
from homeport.client.errors import BadRequest, NotFound
from homeport.sim.engine.bench import Bench, Table

# (reason, message): what happened, for the timeline.
Tell = Callable[[str, str], Awaitable[None]]
_JSON = "application/json"
_PAGES = frozenset({"faults", "journal", "console"})
_CHANGES = {"POST": "FaultInjected", "DELETE": "FaultRemoved"}


class SimulatorPages:
    def __init__(self, simulation: Simulation, tell: Tell) -> None:
        self._simulation = simulation
        self._tell = tell

    async def respond(self, method: str, path: str, query: str, body: bytes, user: str) -> tuple[int, str, str]:
        """Status, content type and text. Raises BadRequest and NotFound."""
        name, _, page = path.partition("/")
        if method == "GET" and not name:
            return _json([_described(each) for each in self._simulation.describe()])
        bench: object = self._simulation.running.get(name)
        if not isinstance(bench, Bench):
            raise NotFound(f"no simulator {name!r} that can be looked at: GET /homeport/sim lists them")
        if (method, page) == ("GET", "tables"):
            return _json([self._machines(name), *bench.tables()])
        first = page.partition("/")[0]
        if first not in _PAGES or method not in ("GET", *_CHANGES):
            raise NotFound("no such page: GET NAME/tables, faults, journal or console/VM; POST and DELETE faults")
        try:
            found = await bench.admin.respond(method, page, query, body)
        except ValueError as error:
            raise BadRequest(str(error)) from error
        if method in _CHANGES and found.status < 300:
            await self._report(method, name, page, body, user)
        return found.status, found.content_type, found.text

    async def _report(self, method: str, name: str, page: str, body: bytes, user: str) -> None:
        removed = page.partition("/")[2] or "all faults"
        what = removed if method == "DELETE" else " ".join(body.decode(errors="replace").split())
        await self._tell(_CHANGES[method], f"Simulator {name}, by {user}: {what}")

    def _machines(self, name: str) -> Table:
        found = [each for each in self._simulation.fleet.machines.values() if each.simulator == name]
        rows = [(each.name, each.state, ", ".join(each.host.addresses), each.image.name) for each in found]
        return Table("VMs", ("Name", "Power", "Addresses", "Image"), sorted(rows))


def _described(state: Any) -> dict[str, Any]:
    """Without passwords and files: those are for who runs the plane."""
    return {
        "name": state.name,
        "requests": state.requests,
        "machines": state.machines,
        "running": state.running,
        "clusters": state.clusters,
    }


def _json(value: object) -> tuple[int, str, str]:
    return 200, _JSON, orjson.dumps(msgspec.to_builtins(value)).decode()
