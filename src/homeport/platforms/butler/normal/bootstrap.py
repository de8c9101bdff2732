"""ClusterBootstrap: machines, networks and addresses of a management cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1 import ClusterBootstrap
from homeport.api.butler.v1alpha1.clusterbootstrap import (
    BootstrapAddons,
    BootstrapCluster,
    BootstrapNetwork,
    BootstrapTalos,
    ClusterBootstrapSpec,
    MachinePool,
    MachineShape,
)
from homeport.api.butler.v1alpha1.part import Exposure, ExtraDisk, ProviderRef
from homeport.machinery.address import AddressSet
from homeport.machinery.talos.release import ReleaseError, choose_kubernetes, find_release
from homeport.platforms.butler.normal.addresses import (
    NONE,
    carve_out,
    check_apart,
    read_address,
    read_network,
    read_pool,
    read_range,
)
from homeport.platforms.butler.normal.config import check_exposure
from homeport.platforms.butler.normal.machine import read_provider_ref
from homeport.platforms.butler.normal.outcome import Normal, Reading
from homeport.platforms.butler.normal.sizes import (
    check_extra_disks,
    disk_gib,
    either_amount,
    from_gib,
    from_mib,
    memory_mib,
)
from homeport.platforms.butler.normal.tenant import POD_CIDR, SERVICE_CIDR

TALOS_VERSION = "v1.9.3"
# The image factory's schematic without any extension.
PLAIN_SCHEMATIC = "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d34b4ba"
SINGLE, HA = "single-node", "ha"
_LONGEST_NAME = 52  # of a cluster: names of machines and Secrets are made from it


@dataclass(frozen=True, slots=True)
class MachinesModel:
    replicas: int
    cpu: int
    memory_mib: int
    disk_gib: int
    extra_disks: tuple[ExtraDisk, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BootstrapModel:
    name: str
    type: str  # of the provider; '': the one of the ProviderConfig
    provider: ProviderRef | None  # None: by default, as tenant clusters
    single_node: bool
    version: str  # of Kubernetes; '': the one of the Talos version
    control_plane: MachinesModel
    workers: MachinesModel | None
    pod_cidr: str
    service_cidr: str
    vip: str
    vip_interface: str  # '': by type of provider
    load_balancer: AddressSet  # without the VIP
    talos: BootstrapTalos
    addons: BootstrapAddons
    exposure: Exposure
    paused: bool


@dataclass(frozen=True, slots=True)
class _Networks:
    pods: str
    services: str
    vip: str
    interface: str
    pool: AddressSet


def normal_cluster_bootstrap(bootstrap: ClusterBootstrap) -> Normal[BootstrapModel]:
    reading, spec = Reading(), bootstrap.spec
    cluster = spec.cluster or BootstrapCluster()
    type_ = reading.either(("spec.provider", spec.provider), ("spec.type", spec.type)) or ""
    refs = (spec.provider_ref, spec.provider_config_ref)
    provider = read_provider_ref(reading, bootstrap.metadata.namespace, *refs, required=False)
    single = cluster.topology == SINGLE
    plane = _machines(
        reading, "spec.cluster.controlPlane", cluster.control_plane, 1 if single else 3, (4, "16Gi", "100Gi")
    )
    workers = _machines(reading, "spec.cluster.workers", cluster.workers, 1, (8, "32Gi", "200Gi"))
    _check_topology(reading, plane, single=single)
    networks = _networks(reading, spec, cluster)
    if not single and not networks.vip:
        reading.missing("spec.network.vip", "several control plane machines need a virtual address that is free")
    check_exposure(reading, "spec.controlPlaneExposure", spec.control_plane_exposure)
    name, talos = cluster.name or bootstrap.metadata.name, spec.talos or BootstrapTalos()
    _check_name(reading, name)
    _check_release(reading, talos.version or TALOS_VERSION, cluster.kubernetes_version)
    _check_addons(reading, spec.addons or BootstrapAddons(), talos)
    return reading.result(
        lambda: BootstrapModel(
            name=name,
            type=type_,
            provider=provider,
            single_node=single,
            version=cluster.kubernetes_version,
            control_plane=plane,
            workers=workers if cluster.workers is not None and workers.replicas else None,
            pod_cidr=networks.pods,
            service_cidr=networks.services,
            vip=networks.vip,
            vip_interface=networks.interface,
            load_balancer=networks.pool,
            talos=_filled(talos),
            addons=spec.addons or BootstrapAddons(),
            exposure=spec.control_plane_exposure or Exposure(),
            paused=spec.paused,
        )
    )


def _filled(talos: BootstrapTalos) -> BootstrapTalos:
    return BootstrapTalos(
        version=talos.version or TALOS_VERSION,
        schematic=talos.schematic or PLAIN_SCHEMATIC,
        install_disk=talos.install_disk,
        config_patches=talos.config_patches,
    )


def _machines(
    reading: Reading, path: str, pool: MachinePool | None, replicas: int, size: tuple[int, str, str]
) -> MachinesModel:
    given = pool or MachinePool()
    shape, at = given.machine_template or MachineShape(), f"{path}.machineTemplate"
    cpu = reading.either((f"{path}.cpu", given.cpu), (f"{at}.cpu", shape.cpu)) or size[0]
    memory = either_amount(reading, (f"{path}.memoryMB", from_mib(given.memory_mb)), (f"{at}.memory", shape.memory))
    disk = either_amount(
        reading,
        (f"{path}.diskGB", from_gib(given.disk_gb)),
        (f"{at}.diskSize", shape.disk_size),
        (f"{at}.disk", shape.disk),
    )
    check_extra_disks(reading, f"{path}.extraDisks", given.extra_disks)
    return MachinesModel(
        replicas=replicas if given.replicas is None else given.replicas,
        cpu=cpu,
        memory_mib=memory_mib(reading, f"{at}.memory", memory or size[1]),
        disk_gib=disk_gib(reading, f"{at}.disk", disk or size[2]),
        extra_disks=tuple(given.extra_disks),
        labels=dict(given.labels),
    )


def _check_topology(reading: Reading, plane: MachinesModel, *, single: bool) -> None:
    path = "spec.cluster.controlPlane.replicas"
    if single and plane.replicas != 1:
        reading.fault(path, f"{plane.replicas}: topology single-node has one machine; set topology: ha for more")
    elif not single and plane.replicas % 2 == 0:
        reading.fault(path, f"{plane.replicas}: etcd needs an odd number of control plane machines, for example 3")


def _check_name(reading: Reading, name: str) -> None:
    if len(name) > _LONGEST_NAME:
        text = f'"{name}" has {len(name)} characters; at most {_LONGEST_NAME} are possible: machines are called'
        reading.fault("spec.cluster.name", f"{text} NAME-worker-N")


def _check_release(reading: Reading, talos: str, kubernetes: str) -> None:
    try:
        find_release(talos)
    except ReleaseError as wrong:
        reading.fault("spec.talos.version", str(wrong))
        return
    try:
        choose_kubernetes(talos, kubernetes)
    except ReleaseError as wrong:
        reading.fault("spec.cluster.kubernetesVersion", str(wrong))


def _check_addons(reading: Reading, addons: BootstrapAddons, talos: BootstrapTalos) -> None:
    if addons.ingress is not None and addons.ingress.type == "nginx" and addons.ingress.enabled is not False:
        text = '"nginx": the maintainers of ingress-nginx retired it, and it is not in the catalogue'
        reading.fault("spec.addons.ingress.type", f"{text}: use traefik, or none")
    without_storage = addons.storage is not None and addons.storage.type == "none"
    if not without_storage and talos.schematic in ("", PLAIN_SCHEMATIC):
        text = "Longhorn needs the Talos extensions iscsi-tools and util-linux-tools: make a schematic with them at"
        reading.warn(f"spec.talos.schematic: {text} factory.talos.dev, or set spec.addons.storage.type to none")


def _networks(reading: Reading, spec: ClusterBootstrapSpec, cluster: BootstrapCluster) -> _Networks:
    one, two = spec.network or BootstrapNetwork(), spec.networking or BootstrapNetwork()
    pods = _text(reading, "podCIDR", one.pod_cidr, two.pod_cidr) or POD_CIDR
    services = _text(reading, "serviceCIDR", one.service_cidr, two.service_cidr) or SERVICE_CIDR
    vip = reading.either(
        ("spec.network.vip", one.vip),
        ("spec.networking.vip", two.vip),
        ("spec.cluster.controlPlaneEndpoint", cluster.control_plane_endpoint),
    )
    path, pool = _pool(reading, spec, one, two)
    address = read_address(reading, "spec.network.vip", vip or "")
    networks = {
        "spec.network.podCIDR": read_network(reading, "spec.network.podCIDR", pods),
        "spec.network.serviceCIDR": read_network(reading, "spec.network.serviceCIDR", services),
        path: pool,
    }
    check_apart(reading, networks)
    for where, network in list(networks.items())[:2]:
        if address is not None and address in network:
            reading.fault(
                "spec.network.vip",
                f"{address} is inside {where} ({network}): choose an address of the machines' network",
            )
    left = carve_out(reading, path, pool, "spec.network.vip", address)
    interface = _text(reading, "vipInterface", one.vip_interface, two.vip_interface)
    return _Networks(pods, services, str(address or ""), interface, left)


def _text(reading: Reading, name: str, one: str, two: str) -> str:
    return reading.either((f"spec.network.{name}", one), (f"spec.networking.{name}", two)) or ""


def _pool(
    reading: Reading, spec: ClusterBootstrapSpec, one: BootstrapNetwork, two: BootstrapNetwork
) -> tuple[str, AddressSet]:
    addon = spec.addons.load_balancer if spec.addons else None
    platform = spec.platform.metallb_pool if spec.platform else ""
    spellings = [
        (path, read_pool(reading, path, given))
        for path, given in (
            ("spec.network.loadBalancerPool", one.load_balancer_pool),
            ("spec.networking.loadBalancerPool", two.load_balancer_pool),
        )
    ]
    spellings += [
        (path, read_range(reading, path, text))
        for path, text in (
            ("spec.addons.loadBalancer.addressPool", addon.address_pool if addon else ""),
            ("spec.platform.metalLBPool", platform),
        )
    ]
    found = reading.either(*((path, pool or None) for path, pool in spellings)) or NONE
    return next((path for path, pool in spellings if pool), spellings[0][0]), found
