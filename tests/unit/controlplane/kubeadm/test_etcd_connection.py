"""Connections to etcd are kept while it is asked often, and one that broke says nothing about the member."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from homeport.apiserver.auth.certificate import key_pem
from homeport.capi.remote.pki import KeyPair
from homeport.client.errors import NotConnected
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm.etcd.client import EtcdClient, Status
from homeport.controlplane.kubeadm.etcd.connection import Access, Connections
from homeport.controlplane.kubeadm.etcd.inspector import Inspector
from homeport.runtime.clock import LoopClock, SystemClock
from homeport.runtime.testing import virtual
from homeport.sim.machine.etcdwire.member import EtcdService
from unit.controlplane.kubeadm.test_etcd_client import SocketStream, Store, World

CLUSTER = Key("default", "c")


class Forwards:
    """Forwarded ports: counted, and broken on demand."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.opened: list[SocketStream] = []
        self.services: list[EtcdService] = []
        self.blocked = ""  # why there is no connection to the API server

    async def port_forward(self, namespace: str, pod: str, port: int) -> SocketStream:
        if self.blocked:
            raise NotConnected(self.blocked)
        node = pod.removeprefix("etcd-")
        world = self._world
        service = EtcdService(world.etcd, node, Store(), world.authority, list, world.clock, lambda: None)
        ours, theirs = socket.socketpair()
        await service.accept(theirs, "test")
        self.services.append(service)
        self.opened.append(SocketStream(*await asyncio.open_connection(sock=ours)))
        return self.opened[-1]

    async def end(self) -> None:
        served = [task for task in asyncio.all_tasks() if task.get_name().startswith("etcd cp-")]
        await asyncio.gather(*served)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def status(client: EtcdClient) -> Status:
    return await client.status()


def access(world: World, forwards: Forwards, *, lasting: bool) -> Access:
    return Access(CLUSTER, forwards, world.identity(world.authority), lasting)


async def test_a_connection_is_used_again_only_if_it_is_to_last(world: World) -> None:
    connections, forwards = Connections(LoopClock()), Forwards(world)
    once = access(world, forwards, lasting=False)
    for _ in range(2):
        await connections.ask(once, "cp-0", status)
    assert len(forwards.opened) == 2
    often = access(world, forwards, lasting=True)
    for _ in range(3):
        await connections.ask(often, "cp-0", status)
    assert len(forwards.opened) == 3
    await connections.close()
    await forwards.end()


async def test_of_two_questions_at_the_same_time_one_connection_is_kept_and_the_other_ends(world: World) -> None:
    connections, forwards = Connections(LoopClock()), Forwards(world)
    often = access(world, forwards, lasting=True)
    await asyncio.gather(*(connections.ask(often, "cp-0", status) for _ in range(2)))
    await connections.close()
    assert len(forwards.opened) == 2
    assert all(each.writer.is_closing() for each in forwards.opened)
    await forwards.end()


async def test_a_kept_connection_that_broke_is_replaced_within_the_same_question(world: World) -> None:
    connections, forwards = Connections(LoopClock()), Forwards(world)
    often = access(world, forwards, lasting=True)
    await connections.ask(often, "cp-0", status)
    await forwards.opened[0].close()
    await forwards.end()
    assert (await connections.ask(often, "cp-0", status)).leader
    assert len(forwards.opened) == 2
    await connections.close()
    await forwards.end()


async def test_a_kept_connection_to_a_member_that_ended_is_replaced(world: World) -> None:
    connections, forwards = Connections(LoopClock()), Forwards(world)
    often = access(world, forwards, lasting=True)
    await connections.ask(often, "cp-0", status)
    forwards.services[0].end()
    assert (await connections.ask(often, "cp-0", status)).leader
    assert len(forwards.opened) == 2
    await connections.close()
    await forwards.end()


async def test_an_api_server_that_can_not_be_reached_tells_nothing_about_members_that_were_not_asked(
    world: World,
) -> None:
    authority = KeyPair(world.authority.pem, key_pem(world.authority.issuer.key))
    inspector, forwards = Inspector(SystemClock()), Forwards(world)
    assert (await inspector.look(CLUSTER, forwards, authority, ["cp-0"], lasting=True)).members is not None
    forwards.blocked = "nothing answers"
    view = await inspector.look(CLUSTER, forwards, authority, ["cp-0", "cp-1", "cp-2"])
    assert view.members is None
    assert "cp-1: it does not answer: nothing answers" in view.error
    forwards.blocked = ""
    view = await inspector.look(CLUSTER, forwards, authority, ["cp-0", "cp-1", "cp-2"])
    assert view.answering == {"cp-0", "cp-1", "cp-2"}
    inspector.forget(CLUSTER)
    await forwards.end()


def test_a_kept_connection_without_an_answer_is_replaced_after_two_seconds(world: World) -> None:
    @virtual
    async def run() -> None:
        connections, forwards = Connections(LoopClock()), Forwards(world)
        often = access(world, forwards, lasting=True)
        await connections.ask(often, "cp-0", status)
        began = asyncio.get_running_loop().time()
        asked = 0

        async def hang_once(client: EtcdClient) -> Status:
            nonlocal asked
            asked += 1
            if asked == 1:
                await asyncio.Event().wait()
            return await client.status()

        assert (await connections.ask(often, "cp-0", hang_once)).leader
        assert asyncio.get_running_loop().time() - began == pytest.approx(2.0, abs=0.1)
        assert len(forwards.opened) == 2
        await connections.close()
        await forwards.end()

    run()


def test_a_connection_that_is_not_used_for_a_while_ends(world: World) -> None:
    @virtual
    async def run() -> None:
        connections, forwards = Connections(LoopClock()), Forwards(world)
        await connections.ask(access(world, forwards, lasting=True), "cp-0", status)
        assert connections.drop_idle()
        await asyncio.sleep(30)
        assert not connections.drop_idle()
        await forwards.end()

    run()
