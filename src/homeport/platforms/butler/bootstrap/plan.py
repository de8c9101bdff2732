"""The machines of a management cluster, their Talos configuration, and where etcd starts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from homeport.machinery import yaml
from homeport.machinery.talos.config import ClusterShape, Patch
from homeport.machinery.talos.release import choose_kubernetes, installer_image
from homeport.machinery.talos.vip import VirtualAddress
from homeport.platforms.butler.bootstrap.name import control_plane_name, worker_name
from homeport.platforms.butler.normal.bootstrap import BootstrapModel, MachinesModel
from homeport.platforms.butler.normal.machine import CONTROL_PLANE, WORKER
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 5.0
_LONGHORN_FOLDER = "/var/lib/longhorn"


@dataclass(frozen=True, slots=True)
class MachinePlan:
    name: str
    role: str
    size: MachinesModel

    @property
    def control_plane(self) -> bool:
        return self.role == CONTROL_PLANE


def plan_machines(model: BootstrapModel) -> list[MachinePlan]:
    """Control planes first."""
    plane, workers = model.control_plane, model.workers
    found = [MachinePlan(control_plane_name(model.name, n), CONTROL_PLANE, plane) for n in range(plane.replicas)]
    if workers is not None:
        found += [MachinePlan(worker_name(model.name, n), WORKER, workers) for n in range(workers.replicas)]
    return found


# -- Talos -----------------------------------------------------------------------------------------------------------


def plan_cluster(model: BootstrapModel, endpoint: str, interface: str) -> ClusterShape:
    """`endpoint`: the virtual address, or the address of the only control plane. `interface`: of the provider."""
    talos = model.talos
    return ClusterShape(
        name=model.name,
        endpoint=endpoint,
        kubernetes=choose_kubernetes(talos.version, model.version),
        installer=installer_image(talos.version, talos.schematic),
        install_disk=talos.install_disk or "/dev/vda",
        pod_subnets=(model.pod_cidr,),
        service_subnets=(model.service_cidr,),
        vip=_virtual_address(model, interface),
        kube_proxy=not has_cilium(model),
        pods_on_control_planes=model.workers is None,
        patches=(*_longhorn(model), *(Patch(each.op, each.path, each.value) for each in talos.config_patches)),  # type: ignore[arg-type]
    )


def has_cilium(model: BootstrapModel) -> bool:
    return model.addons.cni is None or model.addons.cni.type in ("", "cilium")


def has_longhorn(model: BootstrapModel) -> bool:
    return model.addons.storage is None or model.addons.storage.type in ("", "longhorn")


def _virtual_address(model: BootstrapModel, interface: str) -> VirtualAddress | None:
    """None: there is no virtual address, or something outside of the cluster holds it."""
    given = model.addons.control_plane_ha
    if not model.vip or (given is not None and given.type == "none"):
        return None
    made = VirtualAddress(model.vip, model.vip_interface or interface)
    return replace(made, version=given.version) if given is not None and given.version else made


def _longhorn(model: BootstrapModel) -> tuple[Patch, ...]:
    """Longhorn keeps volumes in a folder of the machine, which kubelets of Talos have to share with it."""
    if not has_longhorn(model):
        return ()
    mount: dict[str, Any] = {
        "source": _LONGHORN_FOLDER,
        "destination": _LONGHORN_FOLDER,
        "type": "bind",
        "options": ["bind", "rshared", "rw"],
    }
    return (Patch("add", "/machine/kubelet/extraMounts", yaml.dump([mount])),)


# -- etcd ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlaneSeen:
    """A control plane as its Talos API answered. `trouble` '': it answered."""

    name: str
    uid: str  # of the MachineRequest
    trouble: str = ""
    etcd: bool = False  # etcd runs there

    @property
    def mark(self) -> str:
        return f"{self.name}/{self.uid}"


@dataclass(frozen=True, slots=True)
class Start:
    """Ask this machine to start etcd."""

    plane: PlaneSeen


def plan_etcd(seen: Sequence[PlaneSeen], mark: str, *, initialized: bool) -> Start | Wait | None:
    """None: etcd has been started. `mark`: which machine was chosen before; '': none. `initialized`: the API server of
    the cluster has answered before.

    A second etcd would be a second, empty cluster, and its machines would leave the first one. So etcd is started only
    if every control plane answers and none of them runs it, and always on the same machine.
    """
    if initialized or any(each.etcd for each in seen):
        return None
    chosen = seen[0] if not mark else next((each for each in seen if each.mark == mark), None)
    if chosen is None:
        text = (
            f"etcd was started on machine {mark.partition('/')[0]}, which has been deleted since: its data is lost. "
            "Delete this ClusterBootstrap and create it again"
        )
        return Wait("EtcdMachineLost", text, warning=True)
    silent = [f"{each.name}: {each.trouble}" for each in seen if each.trouble]
    if silent:
        head = "etcd starts when Talos answers on every control plane"
        return Wait("WaitingForTalos", "\n".join([head, *silent]), after=_LOOK_SECONDS)
    return Start(chosen)
