"""What kubeadm checks before it begins."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.sim.machine.kubeadm.config import KubeadmError, Registering
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.facts import Version, parse_version

_CPUS = 2
_MEMORY_MIB = 1700
_MANIFESTS = "/etc/kubernetes/manifests"


def check_control_plane(machine: Machine, registering: Registering) -> None:
    _refuse(machine, registering, [*_resources(machine), *_leftovers(machine)])


def check_worker(machine: Machine, registering: Registering) -> None:
    found = []
    if machine.disk.read("/etc/kubernetes/kubelet.conf") is not None:
        found.append(("FileAvailable--etc-kubernetes-kubelet.conf", "/etc/kubernetes/kubelet.conf already exists"))
    _refuse(machine, registering, found)


def check_versions(machine: Machine, registering: Registering, version: str) -> None:
    """kubeadm, the kubelet and the cluster must be close enough to each other."""
    kubeadm, cluster = parse_version(machine.installed), parse_version(version)
    oldest = (kubeadm[0], kubeadm[1] - 1, 0)
    if cluster < oldest:
        raise KubeadmError(
            "this version of kubeadm only supports deploying clusters with the control plane version "
            f">= {oldest[0]}.{oldest[1]}.0. Current version: {version}"
        )
    if cluster[:2] > kubeadm[:2]:
        machine.console.say(
            "\t[WARNING KubernetesVersion]: Kubernetes version is greater than kubeadm version. Please consider to "
            f"upgrade kubeadm. Kubernetes version: {_dotted(cluster)}. Kubeadm version: {kubeadm[0]}.{kubeadm[1]}.x"
        )
    found = []
    if kubeadm[:2] > cluster[:2]:
        text = f'Kubelet version: "{_dotted(kubeadm)}" Control plane version: "{_dotted(cluster)}"'
        found.append(("KubeletVersion", f"the kubelet version is higher than the control plane version. {text}"))
    elif cluster[1] - kubeadm[1] > 3:
        text = f'Kubelet version: "{_dotted(kubeadm)}"'
        found.append(("KubeletVersion", f"Kubelet version is lower than kubeadm can support. Please upgrade. {text}"))
    _refuse(machine, registering, found)


def _resources(machine: Machine) -> Iterator[tuple[str, str]]:
    if machine.cpus < _CPUS:
        yield "NumCPU", f"the number of available CPUs {machine.cpus} is less than the required {_CPUS}"
    mebibytes = machine.memory_bytes // 1024**2
    if mebibytes < _MEMORY_MIB:
        yield "Mem", f"the system RAM ({mebibytes} MB) is less than the minimum {_MEMORY_MIB} MB"


def _leftovers(machine: Machine) -> Iterator[tuple[str, str]]:
    for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"):
        path = f"{_MANIFESTS}/{name}.yaml"
        if machine.disk.read(path) is not None:
            yield f"FileAvailable-{path.replace('/', '-')}", f"{path} already exists"


def _refuse(machine: Machine, registering: Registering, found: list[tuple[str, str]]) -> None:
    lines = []
    for name, text in found:
        if name.lower() in registering.ignored or "all" in registering.ignored:
            machine.console.say(f"\t[WARNING {name}]: {text}")
        else:
            lines.append(f"\t[ERROR {name}]: {text}")
    if lines:
        lines.append("[preflight] To make a check non-fatal, name it in ignorePreflightErrors")
        raise KubeadmError(
            "error execution phase preflight: [preflight] Some fatal errors occurred:\n" + "\n".join(lines)
        )


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))
