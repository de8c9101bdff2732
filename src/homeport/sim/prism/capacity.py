"""Whether it fits: hosts, storage, GPUs, projects. Capacity is real, and a full cluster refuses."""

from __future__ import annotations

from homeport.sim.prism.entity import Cluster, Container, Gpu, GpuDevice, Host, Project, Vm
from homeport.sim.prism.error import exhausted, rejected
from homeport.sim.prism.usage import Usage, stored
from homeport.sim.prism.world import World

_VENDORS = {"kNvidia": "NVIDIA", "kIntel": "INTEL", "kAmd": "AMD"}


def place(world: World, usage: Usage, vm: Vm) -> str:
    """The host with most memory free that can run the machine."""
    cluster = world.clusters.get(vm.cluster)
    hosts = [host for host in cluster.hosts if _fits(cluster, host, usage, vm)] if cluster else []
    needed = {device.host for gpu in vm.gpus if (device := world.gpus.get(gpu.device)) and device.host}
    if needed:
        hosts = [host for host in hosts if host.name in needed or host.ext_id in needed]
    if not hosts:
        name = cluster.name if cluster else vm.cluster
        raise exhausted(
            f"No host of the cluster {name} can run the VM {vm.name}: {vm.vcpus} vCPUs and "
            f"{vm.memory_bytes} bytes of memory are needed.",
            "VMM-34418",
        )
    return max(hosts, key=lambda host: (host.memory_bytes - usage.memory[host.ext_id], host.ext_id)).ext_id


def _fits(cluster: Cluster, host: Host, usage: Usage, vm: Vm) -> bool:
    return (
        not host.maintenance
        and host.memory_bytes - usage.memory[host.ext_id] >= vm.memory_bytes
        and host.threads >= vm.vcpus
        and host.cores * cluster.vcpus_per_core - usage.vcpus[host.ext_id] >= vm.vcpus
    )


def check_growth(world: World, usage: Usage, before: Vm, after: Vm) -> None:
    """A machine that is on grows where it is, if its host has room."""
    found = world.cluster_of_host(before.host)
    if found is None or (after.memory_bytes <= before.memory_bytes and after.vcpus <= before.vcpus):
        return
    host = found[1]
    free = host.memory_bytes - usage.memory[host.ext_id] + before.memory_bytes
    if after.memory_bytes > free or after.vcpus > host.threads:
        raise exhausted(f"The host {host.name} has no room for the VM {after.name} to grow.", "VMM-34418")


def default_container(world: World, cluster: str) -> Container | None:
    mine = [container for container in world.containers if container.cluster == cluster]
    return next((each for each in mine if each.name == "SelfServiceContainer"), mine[0] if mine else None)


def check_storage(world: World, usage: Usage, added: dict[str, int], *, full: bool) -> None:
    """`added`: bytes by container. `full`: somebody filled the cluster."""
    for ext_id, size in added.items():
        container = world.containers.get(ext_id)
        if container is None or size <= 0:
            continue
        if full or usage.storage[ext_id] + size > container.capacity_bytes:
            raise exhausted(
                f"The storage container {container.name} has no space for {size} bytes more.", group="NO_SPACE_LEFT"
            )


def added_storage(before: Vm | None, after: Vm) -> dict[str, int]:
    added: dict[str, int] = {}
    for vm, sign in ((before, -1), (after, 1)):
        for disk in vm.disks if vm is not None else ():
            added[disk.container] = added.get(disk.container, 0) + sign * stored(disk)
    return added


def check_project(world: World, usage: Usage, before: Vm | None, after: Vm) -> None:
    project = world.projects.get(after.project)
    if project is None:
        return
    same = before is not None and before.project == after.project
    old = before if same else None
    for what, used, limit in _quotas(project, usage, old, after):
        if limit and used > limit:
            raise rejected(
                "VMM-31802", f"The {what} quota of the project {project.name} is exceeded: {used} of {limit}."
            )


def _quotas(project: Project, usage: Usage, old: Vm | None, new: Vm) -> tuple[tuple[str, int, int], ...]:
    key = project.ext_id
    return (
        ("vCPU", usage.project_vcpus[key] - (old.vcpus if old else 0) + new.vcpus, project.vcpu_limit),
        (
            "memory",
            usage.project_memory[key] - (old.memory_bytes if old else 0) + new.memory_bytes,
            project.memory_limit_bytes,
        ),
        (
            "storage",
            usage.project_storage[key] - (sum(map(stored, old.disks)) if old else 0) + sum(map(stored, new.disks)),
            project.storage_limit_bytes,
        ),
    )


def bind_gpu(world: World, usage: Usage, cluster: str, gpu: Gpu, taken_now: dict[str, int]) -> GpuDevice:
    """A device of the cluster for what was asked, with something of it left."""
    fitting = [
        device
        for device in world.gpus
        if device.cluster == cluster
        and device.device_id == gpu.device_id
        and _VENDORS[device.vendor] == gpu.vendor
        and (device.mode == "VIRTUAL") == (gpu.mode == "VIRTUAL")
    ]
    for device in fitting:
        if usage.gpus[device.ext_id] + taken_now.get(device.ext_id, 0) < device.count:
            taken_now[device.ext_id] = taken_now.get(device.ext_id, 0) + 1
            return device
    what = f"of device id {gpu.device_id} in mode {gpu.mode}"
    if not fitting:
        raise rejected("", f"The cluster has no GPU {what}.", "GPU_NOT_FOUND")
    raise exhausted(f"All GPUs {what} are in use.", group="GPU_NOT_AVAILABLE")
