"""Many workload clusters at once, half of which do not answer."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.remotes import WORKERS, Remotes
from homeport.client.config import ConfigError
from homeport.client.protocol import ALL, Client, Key, Query
from homeport.runtime.testing import definition, plane, virtual

NUMBER = 140


class Line:
    """The way to a cluster: counts who is on it; a dead one never answers."""

    def __init__(self, network: Network, client: Client, dead: bool) -> None:
        self._network = network
        self._client = client
        self._dead = dead

    async def list(self, kind: Any, query: Query = ALL) -> Any:
        self._network.asking += 1
        self._network.most = max(self._network.most, self._network.asking)
        try:
            await asyncio.sleep(3600 if self._dead else 0.05)
        finally:
            self._network.asking -= 1
        return await self._client.list(kind, query)

    async def close(self) -> None:
        self._network.closed += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class Network:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.asking = self.most = self.closed = self.made = 0

    def connect(self, content: bytes, proxy: str) -> Any:
        self.made += 1
        if content == b"broken":
            raise ConfigError("broken")
        return Line(self, self.client, dead=content == b"dead")


def objects(number: int) -> list[dict[str, Any]]:
    name = f"c{number}"
    content = (b"alive", b"dead")[number % 2]
    cluster = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "status": {"initialization": {"infrastructureProvisioned": True}},
    }
    return [kubeconfig.as_secret(Key("default", name), content, None), cluster]


@virtual
async def test_clusters_that_do_not_answer_do_not_keep_the_others_waiting_and_nobody_is_overrun() -> None:
    made: list[tuple[Remotes, Network]] = []
    async with plane() as workload:

        def add(p: Any) -> None:
            network = Network(workload.client)
            made.append((Remotes(p.manager, connect=network.connect), network))

        async with plane(crds=[definition(Cluster.__resource__)]) as management:
            for number in range(NUMBER):
                await management.have(*objects(number))
            add(management)
            remotes, network = made[0]
            await management.start()
            await asyncio.sleep(30)
            assert remotes.connected == NUMBER // 2
            assert network.most <= WORKERS
            await asyncio.sleep(90)
            assert remotes.connected == NUMBER // 2
            alive = [Key("default", f"c{n}") for n in range(0, NUMBER, 2)]
            dead = [Key("default", f"c{n}") for n in range(1, NUMBER, 2)]
            assert all(remotes.why(key) == "no answer in time" for key in dead)
            assert all(management.clock.now() - (remotes.last_probe(key) or 0) < 50.0 for key in alive)
            await management.stop()
            assert remotes.connected == 0
            assert network.closed == network.made
            assert network.asking == 0
