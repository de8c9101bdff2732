"""pods/log: sources, options, and what is said when there is nothing to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from homeport.apiserver.kinds.pod.log import LogBuffer, LogLine
from homeport.apiserver.registry import Raw
from unit.apiserver.kinds.kind_server import Server

PODS = "/api/v1/namespaces/default/pods"


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


async def pod(server: Server, *containers: str, node: str = "n1", **spec: Any) -> None:
    body = {"containers": [{"name": name, "image": "i"} for name in containers], **spec}
    if node:
        body["nodeName"] = node
    code, answer = await server.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": body})
    assert code == 201, answer


async def read(server: Server, query: str = "") -> bytes:
    code, answer = await server.ask("GET", f"{PODS}/p/log?{query}")
    assert code == 200, answer
    assert isinstance(answer, Raw)
    if isinstance(answer.body, bytes):
        return answer.body
    return b"".join([chunk async for chunk in answer.body])


def filled(*texts: str, at: float = 1_600_000_000.0) -> LogBuffer:
    clock = Clock(at)
    buffer = LogBuffer(clock=clock)
    for text in texts:
        buffer.write(text)
        clock.now += 1
    return buffer


async def test_the_log_of_the_only_container_is_read_without_naming_it(server: Server) -> None:
    await pod(server, "c")
    server.installed.logs.register("default", "p", "c", filled("one", "two\nthree"))
    assert await read(server) == b"one\ntwo\nthree\n"


async def test_tail_limit_and_timestamps_shape_what_is_sent(server: Server) -> None:
    await pod(server, "c")
    server.installed.logs.register("default", "p", "c", filled("one", "two", "three"))
    assert await read(server, "tailLines=2") == b"two\nthree\n"
    assert await read(server, "tailLines=0") == b""
    assert await read(server, "limitBytes=5") == b"one\nt"
    assert await read(server, "timestamps=true&tailLines=1") == b"2020-09-13T12:26:42.000000000Z three\n"
    assert await read(server, "sinceTime=2020-09-13T12:26:41Z") == b"two\nthree\n"


async def test_since_seconds_counts_back_from_the_servers_clock(server: Server) -> None:
    await pod(server, "c")
    buffer = LogBuffer(clock=(clock := Clock(server.registry.clock() - 100)))
    buffer.write("old")
    clock.now += 95
    buffer.write("new")
    server.installed.logs.register("default", "p", "c", buffer)
    assert await read(server, "sinceSeconds=30") == b"new\n"


async def test_following_gives_every_line_once_and_ends_with_the_container(server: Server) -> None:
    await pod(server, "c")
    buffer = filled("before")
    server.installed.logs.register("default", "p", "c", buffer)
    reading = asyncio.create_task(read(server, "follow=true"))
    await asyncio.sleep(0)
    buffer.write("after")
    await asyncio.sleep(0)
    buffer.write("last")
    buffer.close()
    assert await reading == b"before\nafter\nlast\n"


async def test_following_a_container_that_ended_gives_its_log_and_ends(server: Server) -> None:
    await pod(server, "c")
    buffer = filled("all")
    buffer.close()
    server.installed.logs.register("default", "p", "c", buffer)
    assert await read(server, "follow=true") == b"all\n"


async def test_a_reader_who_leaves_is_forgotten(server: Server) -> None:
    await pod(server, "c")
    buffer = filled("one")
    server.installed.logs.register("default", "p", "c", buffer)
    _, answer = await server.ask("GET", f"{PODS}/p/log?follow=true")
    stream: AsyncIterator[bytes] = answer.body
    assert await anext(stream) == b"one\n"
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await stream.aclose()  # type: ignore[attr-defined]
    assert not buffer._followers


async def test_one_of_several_containers_has_to_be_named(server: Server) -> None:
    await pod(server, "a", "b", initContainers=[{"name": "i", "image": "x"}])
    server.installed.logs.register("default", "p", "b", filled("b"))
    code, answer = await server.ask("GET", f"{PODS}/p/log")
    assert code == 400
    expected = "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
    assert answer["message"] == expected
    assert await read(server, "container=b") == b"b\n"
    code, answer = await server.ask("GET", f"{PODS}/p/log?container=zz")
    assert (code, answer["message"]) == (400, "container zz is not valid for pod p")


async def test_a_pod_on_no_node_has_an_empty_log_and_one_without_a_source_waits(server: Server) -> None:
    await pod(server, "c", node="")
    assert await read(server) == b""
    await server.ask("POST", f"{PODS}/p/binding", {"metadata": {"name": "p"}, "target": {"name": "n1"}})
    code, answer = await server.ask("GET", f"{PODS}/p/log")
    assert (code, answer["message"]) == (400, 'container "c" in pod "p" is waiting to start: ContainerCreating')
    code, answer = await server.ask("GET", f"{PODS}/p/log?previous=true")
    assert (code, answer["message"]) == (400, 'previous terminated container "c" in pod "p" not found')


async def test_a_container_that_runs_or_ran_has_an_empty_log_and_one_that_waits_says_why(server: Server) -> None:
    await pod(server, "c")
    answers = {
        "Running": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "Failed": {"terminated": {"exitCode": 1, "reason": "Error"}},
        "Pending": {"waiting": {"reason": "CreateContainerConfigError"}},
    }
    for phase, state in answers.items():
        listed = [{"name": "c", "state": state, "image": "x", "imageID": "", "ready": False, "restartCount": 0}]
        _, current = await server.ask("GET", f"{PODS}/p")
        body = {**current, "status": {"phase": phase, "containerStatuses": listed}}
        code, answer = await server.ask("PUT", f"{PODS}/p/status", body)
        assert code == 200, answer
        if phase != "Pending":
            assert await read(server) == b""
    code, answer = await server.ask("GET", f"{PODS}/p/log")
    assert (code, answer["message"]) == (
        400,
        'container "c" in pod "p" is waiting to start: CreateContainerConfigError',
    )


async def test_the_log_of_a_missing_pod_is_not_found(server: Server) -> None:
    code, answer = await server.ask("GET", f"{PODS}/nosuch/log")
    assert (code, answer["message"]) == (404, 'pods "nosuch" not found')


async def test_wrong_options_are_refused_by_name(server: Server) -> None:
    await pod(server, "c")
    code, answer = await server.ask("GET", f"{PODS}/p/log?tailLines=-1&limitBytes=0")
    assert code == 422
    assert [cause["field"] for cause in answer["details"]["causes"]] == ["tailLines", "limitBytes"]
    code, answer = await server.ask("GET", f"{PODS}/p/log?tailLines=x")
    assert (code, answer["message"]) == (400, 'strconv.ParseInt: parsing "x": invalid syntax')


async def test_a_source_that_was_replaced_is_not_removed_by_its_predecessor(server: Server) -> None:
    logs = server.installed.logs
    remove = logs.register("default", "p", "c", filled("old"))
    newer = filled("new")
    logs.register("default", "p", "c", newer)
    remove()
    assert logs.find("default", "p", "c") is newer


def test_a_buffer_keeps_the_last_lines_only() -> None:
    buffer = LogBuffer(limit=2, clock=Clock(5.0))
    buffer.write("one\ntwo\nthree")
    assert buffer.lines() == (LogLine(5.0, "two"), LogLine(5.0, "three"))
