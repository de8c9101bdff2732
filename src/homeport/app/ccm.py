"""Clouds by their names; and the cloud controller manager of simulated workload clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeport.app.components import COMPONENTS
from homeport.capi.cloud import CloudFile
from homeport.ccm import manifest
from homeport.ccm.install import install
from homeport.ccm.service import parse_pools
from homeport.client.dial import DialOptions
from homeport.infra.error import Misconfigured
from homeport.runtime.lease import LeaseTiming
from homeport.runtime.manager import Elected, Manager

if TYPE_CHECKING:  # planes that simulate nothing don't load simulators
    from homeport.sim.machine.workload.pod.container import Program, Programs, Run

# Nodes wait for us only when they are new: a slower change of leaders than usual spares the API most of the renewals.
TIMING = LeaseTiming(duration=45.0, renew_deadline=30.0, retry_period=10.0)
# The vendor's own manager, which ClusterResourceSets of upstream's templates bring, is known by the file that it reads.
_VENDOR_CONFIG = "--cloud-config"
_VENDOR_LEASE = "cloud-controller-manager"

CLOUDS = {each.cloud.name: each.cloud for each in COMPONENTS if each.cloud is not None}


def parse_cloud(name: str, text: str, namespace: str) -> CloudFile:
    """`text` is the configuration file. Raises Misconfigured, naming the field."""
    if name not in CLOUDS:
        raise Misconfigured(f"unknown cloud {name!r}: expected one of {', '.join(CLOUDS)}")
    found = CLOUDS[name].parse(text, namespace)
    parse_pools(found.pools)  # mistakes are reported now, not when the first Service needs an address
    return found


def programs(dial: Callable[[str], DialOptions]) -> Programs:
    """What containers of simulated workload clusters do. `dial` says how hypervisors are dialled from a machine."""

    def find(container: Mapping[str, Any]) -> Run | None:
        args = [*(container.get("command") or ()), *(container.get("args") or ())]
        if _is_ours(args):
            return lambda program: _run(program, dial(program.host), manifest.LEASE_NAME)
        if _vendor(args):
            return lambda program: _run(program, dial(program.host), _VENDOR_LEASE)
        return None

    return find


def _is_ours(args: Sequence[str]) -> bool:
    """Known by its arguments: the image is a setting."""
    return "ccm" in args[:2] and _option(args, "--cloud") != ""


def _vendor(args: Sequence[str]) -> str:
    """The cloud of a vendor's own manager, by the name of the file that it reads; '' for everything else."""
    name = _option(args, _VENDOR_CONFIG).rpartition("/")[2]
    return next((each.name for each in CLOUDS.values() if name and each.file == name), "")


async def _run(program: Program, dial: DialOptions, lease: str) -> None:
    """As `homeport ccm` does it; the vendor's own does the same to Nodes. Raises the error that ends it."""
    args, namespace = program.args, str(program.pod["metadata"]["namespace"])
    path = _option(args, "--config") or _option(args, _VENDOR_CONFIG)
    if path not in program.files:
        raise Misconfigured(f"{path!r}: no such file. Mount the ConfigMap with the configuration at this path")
    file = parse_cloud(_option(args, "--cloud") or _vendor(args), program.files[path].decode(), namespace)
    mode = Elected(namespace, lease, TIMING)
    who = str(program.pod["metadata"]["name"])
    manager = Manager(program.client, mode=mode, name="homeport-ccm", clock=program.clock, who=who)
    install(manager, file.open(program.client, program.clock, dial), parse_pools(file.pools))
    await manager.run()


def _option(args: Sequence[str], name: str) -> str:
    """The value of `--name value` or `--name=value`; '' if it is not given."""
    for place, each in enumerate(args):
        if each.startswith(f"{name}="):
            return each.partition("=")[2]
        if each == name and place + 1 < len(args):
            return args[place + 1]
    return ""
