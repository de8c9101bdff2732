"""The API of a simulated Acme on HTTPS, with the faults that it was given."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from urllib.parse import parse_qsl

import orjson
from aiohttp.web import BaseRequest, Response, StreamResponse

from acme_sim.world import Machine, Refusal, World
from homeport.sim.engine.call import Answer, Call, Dropped, Router
from homeport.sim.engine.gate import Gate
from homeport.sim.engine.injector import Subject
from homeport.sim.engine.journal import Journal
from homeport.sim.engine.wire import Listeners

Handler = Callable[[Call], Answer]


class Server:
    """Answers for one world."""

    def __init__(self, world: World, *, journal_size: int = 5_000) -> None:
        self.world = world
        self.journal = Journal(journal_size)
        self._gate = Gate(self, world.faults, self.journal, world.clock)
        self._listeners = Listeners()
        self._router: Router[Handler] = Router()
        for method, path, handler in (
            ("GET", "/v1/images", lambda call: _items({"id": i, "name": n} for i, n in world.images.items())),
            ("GET", "/v1/networks", lambda call: _items({"id": i, "name": n} for i, n in world.networks.items())),
            ("GET", "/v1/capacity", lambda call: Answer(200, {"freeMemoryGiB": world.free_gib})),
            ("GET", "/v1/machines", self._machines),
            ("POST", "/v1/machines", self._create),
            ("GET", "/v1/machines/{id}", lambda call: Answer(200, self._machine(call).render())),
            ("DELETE", "/v1/machines/{id}", lambda call: _job(world.delete(self._machine(call)).id)),
            ("POST", "/v1/machines/{id}/start", self._start),
            ("GET", "/v1/jobs", self._jobs),
        ):
            self._router.add(method, path, handler)

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext) -> int:
        """Gives the port."""
        return await self._listeners.serve(self._respond, host, port, tls)

    async def close(self) -> None:
        await self._listeners.close()

    async def _respond(self, request: BaseRequest) -> StreamResponse:
        body = await request.read()
        call = Call(
            method=request.method,
            path=request.rel_url.raw_path,
            query=dict(parse_qsl(request.rel_url.raw_query_string)),
            headers={name.lower(): value for name, value in request.headers.items()},
            body=orjson.loads(body) if body else None,
        )
        try:
            answer = await self._gate.respond(call)
        except Dropped:
            if request.transport is not None:
                request.transport.abort()
            return Response(status=500)
        return Response(
            status=answer.status,
            body=orjson.dumps(answer.body),
            headers=answer.headers,
            content_type="application/json",
        )

    # -- what the gate needs -----------------------------------------------------------------------------------

    def subject(self, call: Call) -> Subject:
        route, _, _ = self._router.find(call.method, call.path)
        return Subject(method=call.method, path=call.path, route=route.template if route is not None else "")

    def answer(self, call: Call, *, age: float) -> Answer:
        if call.headers.get("authorization") != f"Bearer {self.world.token}":
            return self.refuse(call, 401, code="denied", message="the token is not valid")
        route, call.params, _ = self._router.find(call.method, call.path)
        if route is None:
            return self.refuse(call, 404, code="no-such-path", message=f"no {call.method} {call.path}")
        self.world.settle()
        try:
            return route.handler(call)
        except Refusal as refusal:
            return self.refuse(call, refusal.status, code=refusal.code, message=refusal.message)
        finally:
            self.world.settle()

    def refuse(self, call: Call, status: int, *, code: str = "", message: str = "", group: str = "") -> Answer:
        return Answer(status, {"error": {"code": code, "message": message or f"refused with status {status}"}})

    def expire_session(self, call: Call) -> None:
        """Acme has no sessions."""

    # -- requests ----------------------------------------------------------------------------------------------

    def _machine(self, call: Call) -> Machine:
        found = self.world.machines.get(call.params["id"])
        if found is None:
            raise Refusal(404, "no-such-machine", f"machine {call.params['id']} does not exist")
        return found

    def _machines(self, call: Call) -> Answer:
        label, _, value = call.query.get("label", "").partition("=")
        found = [each for each in self.world.machines.values() if not label or each.labels.get(label) == value]
        return _items(each.render() for each in found)

    def _create(self, call: Call) -> Answer:
        return _job(self.world.create(call.body, call.headers["idempotency-key"]).id)

    def _start(self, call: Call) -> Answer:
        self.world.start(self._machine(call))
        return Answer(200, {})

    def _jobs(self, call: Call) -> Answer:
        wanted = call.query.get("ids", "").split(",")
        return _items(self.world.jobs[each].render() for each in wanted if each in self.world.jobs)


def _items(found: Iterable[object]) -> Answer:
    return Answer(200, {"items": list(found)})


def _job(id: str) -> Answer:
    return Answer(202, {"job": id})
