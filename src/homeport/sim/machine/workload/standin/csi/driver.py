"""What a CSI driver does, as its sidecars ask it to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import View

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

CSI_DRIVER: Final = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)
NUTANIX: Final = "csi.nutanix.com"
HARVESTER: Final = "driver.harvesterhci.io"
LONGHORN: Final = "driver.longhorn.io"
_KNOWN = frozenset({NUTANIX, HARVESTER, LONGHORN})


def served_drivers(view: View) -> frozenset[str]:
    """Installed drivers with a stand-in. Whether it works at the moment is another matter."""
    return _KNOWN & {each["metadata"]["name"] for each in view.all(CSI_DRIVER)}


class DriverError(Exception):
    """A call that failed, in the form in which sidecars report it."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {text}")


@dataclass(frozen=True, slots=True)
class Caller:
    """The Pod of the driver's controller, and what it knows."""

    cluster: WorkloadCluster
    view: View
    pod: Json
    secret: Mapping[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def host(self) -> str:
        """Its machine, on the simulated network. Raises DriverError."""
        kubelet = self.cluster.kubelets.get(self.pod["spec"]["nodeName"])
        if kubelet is None:
            raise DriverError("Unavailable", f"node {self.pod['spec']['nodeName']} is gone")
        return kubelet.guest.host.name


@dataclass(frozen=True, slots=True)
class NewVolume:
    """`node`: where its first Pod is going to run, if that is known."""

    name: str
    size_bytes: int
    parameters: Mapping[str, str]
    claim: Json
    node: str = ""


class Driver(Protocol):
    """Each call may be repeated: what is done already is done. All raise DriverError."""

    name: str
    images: tuple[str, ...]
    sidecar: str  # in the Pod of its controller, which tells that one from those on nodes; '' if all are alike
    secrets: tuple[str, ...]  # default names of its credentials, in the controller's namespace

    async def create(self, caller: Caller, wanted: NewVolume) -> tuple[str, dict[str, str]]:
        """The volume's handle and attributes."""

    async def delete(self, caller: Caller, handle: str) -> None: ...

    async def expand(self, caller: Caller, handle: str, size_bytes: int) -> None: ...

    async def attach(self, caller: Caller, handle: str, node: Json) -> None: ...

    async def detach(self, caller: Caller, handle: str, node: Json | None) -> None:
        """`node` is None if it is gone."""
