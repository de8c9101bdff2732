"""A simulated Prism Central: what stands behind its gate. Knows no web framework; `wire.py` puts it on one."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import replace as with_changes
from fnmatch import fnmatchcase
from typing import Final

from homeport.runtime.clock import Clock, SystemClock
from homeport.sim.engine.call import Answer, Call, Route
from homeport.sim.engine.download import Downloads, Fetch
from homeport.sim.engine.fault import Fault
from homeport.sim.engine.gate import Gate
from homeport.sim.engine.guest import Guests, NoGuests
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.engine.journal import DEFAULT_SIZE, Journal
from homeport.sim.prism import v3, v4
from homeport.sim.prism.auth import COOKIE, SESSION_SECONDS, Sessions, authenticate
from homeport.sim.prism.core import KINDS, Core
from homeport.sim.prism.entity import User
from homeport.sim.prism.error import Refusal, forbidden, unserved
from homeport.sim.prism.machine import Machines
from homeport.sim.prism.pace import INSTANT, Pace
from homeport.sim.prism.permission import permission_of
from homeport.sim.prism.power import Power, machine_of
from homeport.sim.prism.site import Endpoint, Routes, Site
from homeport.sim.prism.task import bare_id
from homeport.sim.prism.v4.envelope import refused as refused_v4
from homeport.sim.prism.world import World, WorldFile, default_world

REPLAYS_KEPT: Final = 2_000
REPLAY_SECONDS: Final = 3600.0
CONSOLE_KEPT: Final = 1_000  # lines of a machine
_PRODUCT: Final = {"Server": "envoy", "X-Ntnx-Env": "pc", "X-Ntnx-Product": "pc.2024.3.1"}
_GROUPS: Final = {
    401: "UNAUTHENTICATED",
    403: "RBAC_AUTHORIZATION_ERROR",
    404: "ENTITY_NOT_FOUND",
    429: "RATE_LIMIT_EXCEEDED",
    503: "SERVICE_UNAVAILABLE",
}
_MESSAGES: Final = {
    429: "The request was throttled: too many requests.",
    500: "Internal server error.",
    502: "Bad gateway.",
    503: "The service is unavailable.",
    504: "Gateway timeout.",
}


class Prism:
    def __init__(
        self,
        world: WorldFile | None = None,
        *,
        clock: Clock | None = None,
        pace: Pace = INSTANT,
        faults: Iterable[Fault] = (),
        guests: Guests | None = None,
        seed: int = 0,
        session_seconds: float = SESSION_SECONDS,
        journal_size: int = DEFAULT_SIZE,
        newest_minor: int | None = 4,
        fetch: Fetch | None = None,
    ) -> None:
        """`newest_minor`: of API v4, as clients are offered it; None: an older release that has only v3. `fetch` brings
        files that images are made of; None: every URL is there, whatever is in it."""
        self.core = Core(
            World(world if world is not None else default_world()),
            clock=clock or SystemClock(),
            pace=pace,
            guests=guests or NoGuests(),
            seed=seed,
            newest_minor=newest_minor or 0,
            downloads=Downloads(fetch) if fetch is not None else None,
        )
        self.core.faults.set(faults)
        self.power = Power(self.core)
        self.machines = Machines(self.core, self.power)
        self.sessions = Sessions(self.core.clock, self.core.rng, session_seconds)
        self.journal = Journal(journal_size)
        self.gate = Gate(self, self.core.faults, self.journal, self.core.clock, seed=seed)
        self.console: dict[str, deque[str]] = {}
        self._site = Site(self.core, self.power, self.machines, self.core.world)
        self._replays: OrderedDict[tuple[str, str, str], tuple[float, Answer]] = OrderedDict()
        routes = Routes()
        self._v4 = newest_minor is not None
        if self._v4:
            v4.add_routes(routes)
        v4.add_actions(self.core, self.power)
        v3.add_routes(routes)
        self.router = routes.router

    @property
    def world(self) -> World:
        return self.core.world

    @property
    def faults(self) -> Injector:
        return self.core.faults

    def restore(self, file: WorldFile) -> None:
        """Another world in place of this one; sessions, replays and guests belong to the old one."""
        for vm in self.world.vms:
            if vm.booted:
                self.core.guests.removed(vm.ext_id)
        self.core.restore(file)
        self.power.tasks.rebuild()
        self.sessions.end_all()
        self._replays.clear()
        self.wake_guests()

    def wake_guests(self) -> None:
        """Starts the guests of machines that were running when the world was saved."""
        for vm in self.world.vms:
            if vm.booted:
                self.core.guests.powered_on(machine_of(self.core, vm))

    def settle(self) -> None:
        """Everything that came due by now happens."""
        self.power.tasks.settle()

    def write_console(self, vm: str, line: str) -> None:
        """For guests: what a machine says on its console."""
        self.console.setdefault(vm, deque(maxlen=CONSOLE_KEPT)).append(line)

    def read_console(self, vm: str) -> list[str]:
        """By id or by name."""
        named = next((each.ext_id for each in self.world.vms if each.name == vm), vm)
        return list(self.console.get(vm) or self.console.get(named) or ())

    # Behind the gate.

    async def respond(self, call: Call) -> Answer:
        return await self.gate.respond(call)

    def subject(self, call: Call) -> Subject:
        route, params, _ = self.router.find(call.method, call.path)
        if route is None:
            return Subject(method=call.method, path=call.path)
        found = self._entity_subject(route, params, call)
        return with_changes(
            found, method=call.method, path=call.path, route=route.template, user=self._claimed_user(call)
        )

    def _claimed_user(self, call: Call) -> str:
        try:
            return authenticate(self.world, self.sessions, call)[0].name
        except Refusal:
            return ""

    def _entity_subject(self, route: Route[Endpoint], params: dict[str, str], call: Call) -> Subject:
        endpoint = route.handler
        if not endpoint.table:
            return Subject()
        record = getattr(self.world, endpoint.table).get(bare_id(params.get(endpoint.param, "")))
        if record is not None:
            return self.core.subject(record)
        name, cluster = _named_in(call.body)
        return Subject(kind=KINDS.get(endpoint.table, ""), name=name, clusters=self.core.cluster_names(cluster))

    def answer(self, call: Call, *, age: float) -> Answer:
        self.settle()
        route, params, methods = self.router.find(call.method, call.path)
        response_type = route.handler.response_type if route is not None else ""
        try:
            cookies = self._admit(call, route)
            if route is None:
                raise _unknown(call, methods, self._v4)
            call.params = params
            answer = self._answered(call, route, age)
        except Refusal as refusal:
            answer = self._refused(call, refusal, response_type)
            cookies = {} if refusal.status == 401 else self._session(call)
        answer.cookies.update(cookies)
        answer.headers.update(_PRODUCT)
        return answer

    def _admit(self, call: Call, route: Route[Endpoint] | None) -> dict[str, tuple[str, float]]:
        user, shown = authenticate(self.world, self.sessions, call)
        call.user = user.name
        if route is not None and not _may(user, call.method, route):
            raise forbidden(user.name)
        return {COOKIE: (self.sessions.open(user.name), self.sessions.seconds)} if shown else {}

    def _session(self, call: Call) -> dict[str, tuple[str, float]]:
        return {COOKIE: (self.sessions.open(call.user), self.sessions.seconds)} if call.user else {}

    def _answered(self, call: Call, route: Route[Endpoint], age: float) -> Answer:
        endpoint = route.handler
        site = self._site
        if endpoint.reads:
            if age > 0:
                site = with_changes(site, world=self.world.as_of(self.core.now() - age))
            return endpoint.respond(site, call)
        request_id = call.headers.get("ntnx-request-id", "") if call.method == "POST" else ""
        key = (call.path, call.user, request_id)
        if request_id and key in self._replays:
            return _copy(self._replays[key][1])
        try:
            answer = endpoint.respond(site, call)
        except Refusal as refusal:
            answer = self._refused(call, refusal, endpoint.response_type)
        if request_id and answer.status < 500 and answer.status != 412:
            self._remember(key, answer)
        return answer

    def _remember(self, key: tuple[str, str, str], answer: Answer) -> None:
        now = self.core.clock.monotonic()
        self._replays[key] = (now, _copy(answer))
        while len(self._replays) > REPLAYS_KEPT or next(iter(self._replays.values()))[0] < now - REPLAY_SECONDS:
            self._replays.popitem(last=False)

    def refuse(self, call: Call, status: int, *, code: str = "", message: str = "", group: str = "") -> Answer:
        text = message or _MESSAGES.get(status, "The request was refused.")
        refusal = Refusal(status, text, code, group or _GROUPS.get(status, "INTERNAL_ERROR"), group or "INTERNAL_ERROR")
        route, _, _ = self.router.find(call.method, call.path)
        answer = self._refused(call, refusal, route.handler.response_type if route is not None else "")
        answer.headers.update(_PRODUCT)
        return answer

    def _refused(self, call: Call, refusal: Refusal, response_type: str) -> Answer:
        if call.path.startswith("/api/nutanix/"):
            return v3.refused(call, refusal)
        return refused_v4(_with_version(call), refusal, response_type, self.core.now())

    def expire_session(self, call: Call) -> None:
        self.sessions.end(call.cookies.get(COOKIE, ""))


def _may(user: User, method: str, route: Route[Endpoint]) -> bool:
    if user.viewer and not route.handler.reads:
        return False
    needed = permission_of(method, route.template, reads=route.handler.reads)
    return not user.permissions or not needed or any(fnmatchcase(needed, each) for each in user.permissions)


def _with_version(call: Call) -> Call:
    """Errors may come before a route was found: the version is taken from the path."""
    if "v" not in call.params:
        parts = call.path.strip("/").split("/")
        call.params = {**call.params, "v": parts[2] if len(parts) > 2 else ""}
    return call


def _unknown(call: Call, methods: frozenset[str], v4_served: bool) -> Refusal:
    if methods:
        return Refusal(
            405, f"{call.method} is not allowed on {call.path}.", "", "METHOD_NOT_ALLOWED", "INVALID_REQUEST"
        )
    if v4_served and any(call.path.startswith(f"/api/{name}/v4.") for name in v4.NAMESPACES):
        return unserved(f"{call.method} {call.path}")
    return Refusal(404, f"The URL {call.path} was not found.", "", "API_NOT_FOUND", "URL_NOT_FOUND")


def _named_in(body: object) -> tuple[str, str]:
    """Name and cluster of what a body would create, in either API."""
    if not isinstance(body, dict):
        return "", ""
    spec = body.get("spec")
    inner = spec if isinstance(spec, dict) else body
    cluster = inner.get("cluster") or inner.get("cluster_reference") or {}
    if not isinstance(cluster, dict):
        cluster = {}
    return str(inner.get("name") or ""), str(cluster.get("extId") or cluster.get("uuid") or "")


def _copy(answer: Answer) -> Answer:
    return Answer(answer.status, answer.body, dict(answer.headers), {})
