"""Several replicas share the workload clusters: each is connected to its own, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.remotes import Remotes
from homeport.capi.shard import shard_of
from homeport.client.protocol import Client, Key
from homeport.runtime.lease import LeaseTiming
from homeport.runtime.manager import Manager, Sharded
from homeport.runtime.task import cancel
from homeport.runtime.testing import Plane, definition, plane, virtual

MODE = Sharded("kube-system", "homeport", LeaseTiming(15.0, 10.0, 2.0), shard_of)
NAMES = [f"shop-{n}" for n in range(30)]


class Borrowed:
    """A client of the one workload cluster that all of them are: closing it leaves it as it is."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def close(self) -> None: ...


class Replicas:
    def __init__(self, management: Plane, workload: Plane) -> None:
        self._management = management
        self._workload = workload
        self.remotes: dict[str, Remotes] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, who: str) -> None:
        clock = self._management.clock
        manager = Manager(self._management.server.client(), mode=MODE, clock=clock, who=who)
        self.remotes[who] = Remotes(
            manager, connect=lambda content, proxy: cast(Client, Borrowed(self._workload.client))
        )
        self._tasks[who] = asyncio.create_task(manager.run())

    async def stop(self, who: str) -> None:
        del self.remotes[who]
        await cancel(self._tasks.pop(who))

    def connections(self) -> dict[str, set[str]]:
        """Which clusters each replica is connected to."""
        return {
            who: {name for name in NAMES if remotes.get(Key("default", name)) is not None}
            for who, remotes in self.remotes.items()
        }


def cluster(name: str) -> dict[str, Any]:
    status = {"initialization": {"infrastructureProvisioned": True}}
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name},
        "status": status,
    }


@virtual
async def test_each_cluster_has_one_connection_and_each_replica_a_third_of_them() -> None:
    async with plane() as workload, plane(crds=[definition(Cluster.__resource__)]) as management:
        for name in NAMES:
            await management.have(cluster(name), kubeconfig.as_secret(Key("default", name), b"{}", None))
        replicas = Replicas(management, workload)
        for who in ("a", "b", "c"):
            replicas.start(who)
        await asyncio.sleep(60)
        found = replicas.connections()
        assert sorted(name for names in found.values() for name in names) == sorted(NAMES)
        assert all(9 <= len(names) <= 11 for names in found.values()), found

        kept = {who: names for who, names in found.items() if who != "b"}
        await replicas.stop("b")
        await asyncio.sleep(30)
        found = replicas.connections()
        assert sorted(name for names in found.values() for name in names) == sorted(NAMES)
        assert all(names <= found[who] for who, names in kept.items()), "a connection moved without need"

        replicas.start("d")
        await asyncio.sleep(60)
        found = replicas.connections()
        assert sorted(name for names in found.values() for name in names) == sorted(NAMES)
        assert all(9 <= len(names) <= 11 for names in found.values()), found
        for who in list(replicas.remotes):
            await replicas.stop(who)
