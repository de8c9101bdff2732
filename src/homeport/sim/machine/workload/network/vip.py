"""A virtual IP of control planes, as with kube-vip and Talos: the holder of a Lease has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homeport.machinery.address import is_address
from homeport.sim.machine.workload.guest import Guest
from homeport.sim.machine.workload.kind import Json
from homeport.sim.network.address import normal

LEASE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class VipConfig:
    address: str
    port: int = 6443
    lease_seconds: float = LEASE_SECONDS
    kubeconfig: str = ""  # the file on the machine by which kube-vip talks to the API
    program: str = "kube-vip"


def read_kube_vip(manifest: Json) -> VipConfig | None:
    """The configuration of a kube-vip Pod that serves a control plane; None for any other Pod."""
    for container in manifest["spec"].get("containers") or ():
        if "kube-vip" not in str(container.get("image", "")):
            continue
        env = {str(each.get("name")): str(each.get("value", "")) for each in container.get("env") or ()}
        address = env.get("address") or env.get("vip_address") or ""
        if env.get("cp_enable", "").lower() != "true" or not is_address(normal(address)):
            return None
        port = env.get("port", "6443")
        lease = env.get("vip_leaseduration", "")
        return VipConfig(
            normal(address),
            int(port) if port.isdigit() else 6443,
            float(lease) if lease.isdigit() else LEASE_SECONDS,
            _kubeconfig(manifest),
        )
    return None


def _kubeconfig(manifest: Json) -> str:
    for volume in manifest["spec"].get("volumes") or ():
        path = str((volume.get("hostPath") or {}).get("path") or "")
        if path.startswith("/etc/kubernetes/") and path.endswith(".conf"):
            return path
    return ""


class Vip:
    """One address and the machines that may hold it. `settle` after every change of who can."""

    def __init__(self, config: VipConfig) -> None:
        self.config = config
        self.holder: Guest | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._able: Callable[[], Sequence[Guest]] = tuple

    def settle(self, able: Callable[[], Sequence[Guest]]) -> None:
        """`able`: who could hold it now, in order of preference."""
        self._able = able
        if self.holder is not None and self.holder in able():
            if self.config.address not in self.holder.host.addresses:
                self.holder.host.assign(self.config.address)
            return
        if self.holder is None:
            if self._timer is None:
                self._take()
            return
        self.holder.host.release(self.config.address)
        self.holder = None
        # The others learn of it when the lease of the lost one has run out.
        self._cancel()
        self._timer = asyncio.get_running_loop().call_later(self.config.lease_seconds, self._expired)

    def _expired(self) -> None:
        self._timer = None
        self._take()

    def _take(self) -> None:
        able = self._able()
        if able:
            self.holder = able[0]
            self.holder.host.assign(self.config.address)
            self.holder.console.say(_words(self.config))

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self._cancel()
        if self.holder is not None:
            self.holder.host.release(self.config.address)
            self.holder = None


def _words(config: VipConfig) -> str:
    if config.program == "keepalived":
        return f"k0scontroller: (k0s-vip-0) Entering MASTER STATE, holding {config.address} component=keepalived"
    return f"{config.program}: assuming the leadership, announcing {config.address}"
