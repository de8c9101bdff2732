"""Clouds by their names; and the cloud controller manager of simulated workload clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeport.app.components import COMPONENTS
from homeport.capi.cloud import CloudFile
from homeport.ccm import manifest
from homeport.ccm.install import install
from homeport.ccm.service import parse_pools
from homeport.client.reach import Reach
from homeport.infra.error import Misconfigured
from homeport.runtime.lease import LeaseTiming
from homeport.runtime.manager import Elected, Manager

if TYPE_CHECKING:  # planes that simulate nothing don't load simulators
    from homeport.sim.machine.workload.container import Program, Programs, Run

# Nodes wait for us only when they are new: a slower change of leaders than usual spares the API most of the renewals.
TIMING = LeaseTiming(duration=45.0, renew_deadline=30.0, retry_period=10.0)
_IMAGE = "/homeport:"

CLOUDS = {each.cloud.name: each.cloud for each in COMPONENTS if each.cloud is not None}


def parse_cloud(name: str, text: str, namespace: str) -> CloudFile:
    """`text` is the configuration file. Raises Misconfigured, naming the field."""
    if name not in CLOUDS:
        raise Misconfigured(f"unknown cloud {name!r}: expected one of {', '.join(CLOUDS)}")
    found = CLOUDS[name].parse(text, namespace)
    parse_pools(found.pools)  # mistakes are reported now, not when the first Service needs an address
    return found


def programs(reach: Callable[[str], Reach]) -> Programs:
    """What containers of simulated workload clusters do. `reach` says how hypervisors are dialled from a machine."""

    def find(container: Mapping[str, Any]) -> Run | None:
        if _IMAGE in str(container.get("image", "")) and (container.get("args") or [""])[0] == "ccm":
            return lambda program: _run(program, reach(program.host))
        return None

    return find


async def _run(program: Program, reach: Reach) -> None:
    """As `homeport ccm` does it. Raises what it ends of."""
    args, namespace = program.args, str(program.pod["metadata"]["namespace"])
    text = program.files[_option(args, "--config")].decode()
    file = parse_cloud(_option(args, "--cloud"), text, namespace)
    mode = Elected(namespace, manifest.LEASE_NAME, TIMING)
    who = str(program.pod["metadata"]["name"])
    manager = Manager(program.client, mode=mode, name="homeport-ccm", clock=program.clock, who=who)
    install(manager, file.open(program.client, program.clock, reach), parse_pools(file.pools))
    await manager.run()


def _option(args: Sequence[str], name: str) -> str:
    if name not in args[:-1]:
        raise Misconfigured(f"{name}: is required")
    return args[args.index(name) + 1]
