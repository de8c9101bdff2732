"""A simulated site as a process of its own, so that what runs on it can be measured alone.

    python -m capikit.world FOLDER       prints its addresses as a line of JSON, then answers `state` on standard input

Prism Central, machines that boot, their network, the proxy that leads into it, and what a cloud controller manager does
in workload clusters: every Node gets the provider id of its VM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.tls import Authority
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.workload.kind import NODE
from homeport.sim.network import Loopback, Network, Proxy
from homeport.sim.prism.pace import INSTANT
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.serve import NAMES
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import WorldFile, default_world

_UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
_CLOUD_SECONDS = 0.1
_CATEGORY = "KubernetesClusterName"


class Site:
    """In this process: `start`, `run` and ask for its `state`."""

    def __init__(self, folder: Path, world: WorldFile | None = None) -> None:
        clock = SystemClock()
        self.network = Network()
        self.fleet = Fleet(self.network, clock, pace=Pace(poll=0.1))
        self.prism = Prism(world or default_world(), clock=clock, pace=INSTANT, guests=self.fleet)
        self._calls: Counter[str] = Counter()
        self.prism.journal.on_entry = lambda entry: self._calls.update([f"{entry.method} {entry.route}"])
        self._authority = Authority.ensure(folder, clock)
        self._called = self._authority.called("server", NAMES, clock)
        self._wire, self._proxy = Wire(self.prism), Proxy(self.network)

    async def start(self) -> dict[str, Any]:
        port = await self._wire.start(tls=self._called.context)
        central = self.network.attach("prism-central")
        # By the proxy at the usual port of any name, and for those who name it by its address, as upstream's have to.
        for each in (9440, port):
            self.network.stand_in(each, central, lambda dialled: Loopback("127.0.0.1", port))
        await self._proxy.start()
        return {"proxy": self._proxy.url(), "port": port, "authority": str(self._authority.path)}

    async def close(self) -> None:
        await self._wire.close()
        await self.fleet.close()
        await self._proxy.close()

    def state(self) -> dict[str, Any]:
        world = self.prism.world
        return {
            "calls": dict(self._calls),
            "vms": sorted(vm.name for vm in world.vms),
            # How often each was changed, and whether it runs: a VM that is left alone stays as it is.
            "touched": {vm.name: [vm.ext_id, vm.version, vm.power] for vm in world.vms},
            "categories": sorted(c.value for c in world.categories if c.key == _CATEGORY and c.value),
            "clusters": len(self.fleet.clusters()),
        }

    async def run(self) -> None:
        known: dict[int, frozenset[str]] = {}  # by cluster: Nodes that need nothing more
        while True:
            await asyncio.sleep(_CLOUD_SECONDS)
            ids: dict[str, str] | None = None
            for workload in self.fleet.clusters():
                if workload.kubelets.keys() == known.get(id(workload)):
                    continue
                ids = ids or {vm.name: vm.ext_id for vm in self.prism.world.vms}
                with contextlib.suppress(ApiError):
                    known[id(workload)] = await _initialise(workload.client(), ids)


async def _initialise(client: Any, ids: dict[str, str]) -> frozenset[str]:
    """Gives the Nodes that had an id before."""
    done: set[str] = set()
    for node in (await client.list(NODE)).items:
        spec = node.get("spec") or {}
        if spec.get("providerID"):
            done.add(node.name)
        if node.name not in ids or spec.get("providerID"):
            continue
        taints = [each for each in spec.get("taints") or () if each["key"] != _UNINITIALIZED]
        # Whoever adds a taint in the same moment must not lose it: then we look again.
        meta = {"resourceVersion": node.resource_version}
        spec = {"providerID": f"nutanix://{ids[node.name]}", "taints": taints or None}
        body = {"metadata": meta, "spec": spec}
        await client.patch(NODE, Key("", node.name), MergePatch(body))
    return frozenset(done)


async def _serve(folder: Path) -> None:
    site = Site(folder)
    print(json.dumps(await site.start()), flush=True)
    running = asyncio.create_task(site.run())
    # It ends with whoever started it: then nobody holds the other end of the pipe.
    while await asyncio.to_thread(sys.stdin.readline):
        if running.done():
            running.result()
        print(json.dumps(site.state()), flush=True)


class WorldProcess:
    """The site in a process of its own, for the time of the with block."""

    def __enter__(self) -> WorldProcess:
        self._folder = tempfile.TemporaryDirectory(prefix="homeport-world-")
        self._log = open(Path(self._folder.name) / "log", "wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "capikit.world", self._folder.name],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        facts = self._answer()
        self.proxy: str = facts["proxy"]
        self.port: int = facts["port"]
        self.authority = Path(facts["authority"])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.communicate()
        self._log.close()
        self._folder.cleanup()

    def state(self) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write("state\n")
        self.process.stdin.flush()
        return self._answer()

    def log(self) -> str:
        return (Path(self._folder.name) / "log").read_text(errors="replace")

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the simulated site ended:\n{self.log()[-3000:]}")
        found: dict[str, Any] = json.loads(line)
        return found


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1])))
